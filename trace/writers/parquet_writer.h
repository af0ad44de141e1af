#pragma once

#include <string>

#include "trace/trace.h"

namespace lockstep {

/// The bytes of a Parquet file with the types of the original tools (specs of columns: see Trace).
/// ERRORS: Error with ExitCode::kMissingPart in a build without Arrow.
std::string to_parquet_bytes(const Trace& trace);

}  // namespace lockstep
