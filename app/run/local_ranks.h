#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace lockstep {

/// Starts this program with these arguments once for each of so many ranks of this machine, with
/// --rank and --local-rank, and waits for all; they end when this process does. The first that
/// fails gives the code. ERRORS: a rank cannot be started.
ExitCode start_local_ranks(const std::vector<std::string>& arguments, std::int64_t ranks);

}  // namespace lockstep
