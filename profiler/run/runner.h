#pragma once

#include <cstdint>

#include "profiler/run/bootstrap.h"
#include "profiler/run/run_log.h"
#include "profiler/run/run_plan.h"
#include "profiler/run/transport.h"

namespace lockstep {

struct RunLimits {
  std::int64_t iterations = 1, warmups = 0;  ///< warm-ups are not logged
  /// Seconds in which something must end on a rank, beside all computations of the busiest one.
  double patience_s = 120;
};

/// Runs the plan on this rank, together with all others: items are started in the plan's order,
/// some ahead of what has ended, and take their turns on their streams. If this rank fails the
/// others are told why; if another one does, this one stops and says so.
/// ERRORS: Error: of the transport; another rank's with its reason, or no progress within the
/// patience, with the items that ranks are at (ExitCode::kCheckFailed).
RunLog execute(const RunPlan& plan, Transport& transport, Bootstrap& bootstrap,
               const RunLimits& limits);

}  // namespace lockstep
