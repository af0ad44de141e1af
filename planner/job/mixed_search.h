#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "planner/job/mixed_plan.h"

namespace lockstep {

/// One factor by which a rate would have to be other for another of the plans to win.
struct MixedTipping {
  std::string what;   ///< "NIC bandwidth", "A100's speed"
  double factor = 0;  ///< 0: none up to 8
  std::string instead, family;
};

struct MixedSearchResult {
  std::vector<MixedPlan> plans;     ///< priced ones, best first; else that of the least bound
  std::vector<MixedPlan> front;     ///< of those: none is better in both time and memory
  std::vector<MixedPlan> families;  ///< the best of each family, best first
  double bound = 0;
  bool proven = false, stopped = false;
  std::int64_t cuts = 0, divisions = 0, leaves = 0, fitting = 0, replays = 0, work = 0;
  std::int64_t too_large = 0;
  LeftOut left_out;
};

using PriceMixed = std::function<Price(const MixedJob& job)>;

/// Searches plans whose pipelines may differ in depth, GPU types, layers a stage and microbatches:
/// every one of mixed_cuts() with every one of divisions(), on the cluster pipeline by pipeline or
/// stage by stage. Layers are fitted to the stages' speed and memory, with as many microbatches in
/// flight as the schedule ever has, and the batch is shared out so that pipelines end together
/// (share_out()), in multiples of the stages where they have chunks: of the splits whose slowest
/// virtual stage is up to a quarter slower than the least, the one with which a pipeline ends
/// first. ZeRO-2 and 3 over several pipelines, whose collectives come with every microbatch, only
/// where all have the same layers a stage and microbatches, fitted to the slowest GPUs of each.
///
/// They wait in order of a bound: of a cut with a division, whatever its layers and shares
/// (MixedLeaves::least()); then the passes of a kind's slowest stage and of those before it; then
/// that of MixedBound; then they are replayed. When what is first cannot beat the best
/// replayed, that is proven to be the best of these plans. The best by closed form of each family
/// is replayed too, for comparison.
///
/// The result does not depend on threads, unless it was stopped. ERRORS: Error when nothing fits;
/// those of `price`.
MixedSearchResult search_mixed(const MixedProblem& problem, const PriceMixed& price,
                               const std::function<void(std::int64_t)>& progress);

/// For each rate, the factor next to 1 at which another family's best plan would win, by closed
/// forms scaled by how far each replay was above its own; plans stay as they are.
std::vector<MixedTipping> mixed_tipping(const MixedProblem& problem,
                                        const MixedSearchResult& result);

}  // namespace lockstep
