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
/// ZeRO stages, chunks, microbatches, recomputation, sequence parallelism, order of ranks, other
/// numbers of GPUs where the axes have several. What breaks a rule or is forbidden by the axes is
/// left out. PRECONDITION: the plan has no model.
std::vector<PlanVariant> neighbours(const JobProblem& problem, const JobPlan& plan);

/// What would change the choice.
struct TippingPoint {
  std::string what;       ///< "NIC bandwidth"
  double factor = 0;      ///< times what it is; 0: none of those tried changes the choice
  JobPlan instead;        ///< the plan that is best then
  double gain = 0;        ///< by what part it is better than the choice then; below 0: than it was
  bool replayed = false;  ///< what it takes, or those that came first; else closed forms
};

/// Prices a plan by the replay on a cluster with other rates, if it takes no more than `most_work`
/// (ReplayResult::work). The job has its model. Called from several threads at once.
using PriceJobAt =
    std::function<Price(const Job& job, const Speeds& speeds, std::int64_t most_work)>;

/// For NVLink and NIC bandwidth, latency and the GPU's speed, lower and higher: the first factor of
/// 1.25, 1.5, 2, 3, 4, 8 at which some other plan beats the first of `result.plans` by 0.1 % or
/// more, both replayed with it. The others are the replayed plans, the best of each cut that waited
/// for it, and those that are found from the choice on, one neighbours() after the other, as long
/// as they get better, at the last factor. Which of them are replayed, two a factor and sixteen
/// at the last, is by closed forms, each times how far its own plan's replay was above it without
/// the change; for plans that were not replayed, as far as the replayed plan that is the same in
/// most axes, or what makes them as good as the choice, if that is more.
///
/// For memory, at the limit's ends: the most at which the choice does not fit, with the best of the
/// others then; and the least at which one that does not fit now wins. Up to eight plans are
/// replayed for each.
///
/// Each of the ten may spend a fortieth of the work of the search's replays, or 500,000; where that
/// is less than three replays of the choice take, and after that, closed forms stand for them,
/// scaled as above. On JobProblem::threads threads, with the same result. PRECONDITION:
/// result.plans is not empty. O(candidates) closed forms a factor.
std::vector<TippingPoint> tipping_points(const JobProblem& problem, const JobSearchResult& result,
                                         const PriceJobAt& price);

}  // namespace lockstep
