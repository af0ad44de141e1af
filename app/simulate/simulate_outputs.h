#pragma once

#include <string>

#include "app/simulate/simulate_options.h"

namespace lockstep {

/// Whether a trace of this name has what-if's columns.
bool has_whatif_columns(const std::string& path);
/// Whether it is Perfetto's own format.
bool is_perfetto_proto(const std::string& path);

/// Refuses an output that cannot work before the simulation rather than after it.
/// ERRORS: Error that names the flag: a missing folder or part, a name of no known format, what the
/// engine cannot tell, two outputs of one name.
void check_simulate_outputs(const SimulateOptions& options);

}  // namespace lockstep
