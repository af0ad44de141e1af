#pragma once

#include <string>

#include "app/cli_fwd.h"

namespace lockstep {

/// The manual page of a command (or of the program) in man's format, from the same definitions as
/// --help. `version`: "lockstep 0.1.0".
std::string manual_page(const CLI::App& app, const std::string& version);

/// "lockstep-topology-build": what its page is called.
std::string manual_name(const CLI::App& app);

}  // namespace lockstep
