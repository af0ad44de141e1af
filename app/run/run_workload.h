#pragma once

#include "app/run/run_options.h"
#include "base/error.h"

namespace lockstep {

/// Runs the workload on this rank, or starts the ranks of this machine that do.
ExitCode run_workload(const RunOptionsCli& options);

}  // namespace lockstep
