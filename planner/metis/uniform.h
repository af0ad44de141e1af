#pragma once

#include "planner/metis/cost.h"
#include "planner/metis/space.h"

namespace lockstep::metis {

/// A plan of Metis's model of clusters with one type of GPU: pp stages that are cut alike, whose
/// ranks each take mbs samples of a microbatch.
struct UniformPlan {
  int dp = 1, pp = 1, tp = 1;
  std::int64_t mbs = 1;
};

/// The same plan stage by stage: blocks spread evenly, the remainder one each from the second stage
/// on; the embedding is in the first, the head in the last. ERRORS: Error: GPUs of several types,
/// dp x pp x tp is not all GPUs, or (strict) too few samples for a microbatch, (fixed) samples that
/// mbs x dp do not divide.
Plan plan_of(const Problem& problem, const UniformPlan& uniform);

/// Strict as Metis: the bandwidth within the first server is that of all, and the optimizer's time
/// is divided by pp whatever the stages' layers are. Fixed is the price of plan_of().
/// ERRORS: as plan_of(), and as the price of a Plan.
Price price_plan(const Problem& problem, const UniformPlan& uniform);

/// Samples that are left out, stages without layers, and memory: whether the layers of a stage, as
/// their profile has them, need more than a GPU of the first server has. Fixed as of plan_of().
/// ERRORS: as price_plan().
Soundness soundness(const Problem& problem, const UniformPlan& uniform);

}  // namespace lockstep::metis
