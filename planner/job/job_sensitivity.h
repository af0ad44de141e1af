#pragma once

#include <string>
#include <vector>

#include "planner/job/job_search.h"

namespace lockstep {

/// A plan that differs from another in one thing.
struct PlanVariant {
  std::string what;  ///< "tp 4", "no recomputation"
  JobPlan plan;      ///< by closed form
  bool fits = true;  ///< into the memory limit
};

/// The plan with one axis changed: half and twice the degrees (what is left over goes to dp), other
/// ZeRO stages, chunks, microbatches, recomputation, sequence parallelism, order of ranks. What
/// breaks a rule or is forbidden by the axes is left out. PRECONDITION: the plan has no model.
std::vector<PlanVariant> neighbours(const JobProblem& problem, const JobPlan& plan);

/// What would change the choice.
struct TippingPoint {
  std::string what;   ///< "NIC bandwidth"
  double factor = 1;  ///< times what it is; 0: none of those tried changes the choice
  JobPlan instead;    ///< the plan that is best then
  double gain = 0;    ///< by what part it is faster than the choice then
};

/// For NVLink and NIC bandwidth, latency and the GPU's speed, lower and higher: the first factor of
/// 1.25, 1.5, 2, 3, 4, 8 at which some other plan of `candidates` beats the first of them by 0.1 %
/// or more. Step times are closed forms, each times how far its own plan's replay was above it
/// without the change; for plans that were not replayed, the median of those that were.
/// PRECONDITION: the first candidate is priced. O(candidates) closed forms a factor.
std::vector<TippingPoint> tipping_points(const JobProblem& problem,
                                         const std::vector<JobPlan>& candidates);

}  // namespace lockstep
