#pragma once

#include <cstdint>
#include <memory>

#include "profiler/run/bootstrap.h"
#include "profiler/run/run_log.h"
#include "profiler/run/run_plan.h"

namespace lockstep {

struct RunLimits {
  std::int64_t iterations = 1, warmups = 0;  ///< warm-ups are not logged
};

/// Runs the plan on this rank, together with all others. If this rank fails the others are told
/// why; if another one does, this one stops and says so.
/// ERRORS: Error: of the transport, or another rank's with its reason (ExitCode::kCheckFailed).
RunLog execute(const RunPlan& plan, Transport& transport, Bootstrap& bootstrap,
               const RunLimits& limits);

/// A transport that moves no data: collectives over all ranks wait for each other through the
/// bootstrap, everything else is over at once, and computation idles. For trying a workload, a
/// launcher and a network without GPUs.
std::unique_ptr<Transport> make_control_transport(Bootstrap& bootstrap);

}  // namespace lockstep
