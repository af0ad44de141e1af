#pragma once

#include <cstdint>
#include <span>

#include "simulator/network/analytic/analytic_options.h"
#include "simulator/replay/step_result.h"
#include "simulator/replay/straggler.h"
#include "workloads/workload.h"

namespace lockstep {

/// What is slower than it should be, and the draws of it.
struct AnalyticStragglers {
  std::span<const Straggler> stragglers;
  std::uint64_t seed = 0;
  std::int64_t step = 0;
};

/// One training step of a job of operations (a model's, or a pipeline of a table of layers) by
/// closed formulas: every stage's operations in their order, with what they wait for, where each
/// collective takes default_collective_time() from when its last rank enters and a message between
/// ranks the time of a send/receive, whatever else is on the wire. So bubbles, overlap and waiting
/// are the schedule's own, and contention is none.
///
/// Ranks lie on servers one after the other, options.gpus_per_server each; the groups of all ranks
/// of a program as those of its first one. `workload` and
/// `topology` of the result are left empty, ports and transfers are none. O(operations of one rank
/// of each program), with stragglers those of all ranks.
/// ERRORS: Error where options are out of range, where the job has other ranks than
/// `options.gpus`, if that is not 0, times out of range, and stragglers of links.
StepResult analytic_replay(const Workload& workload, const AnalyticOptions& options,
                           const AnalyticStragglers& slow);

}  // namespace lockstep
