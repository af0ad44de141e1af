#pragma once

#include <cstdint>
#include <vector>

#include "generator/exact/buckets.h"
#include "generator/exact/stage_plan.h"

namespace lockstep {

/// A step of a chunk's backward pass that completes gradients.
struct GradientItem {
  std::size_t unit = 0;  ///< in forward order
  std::size_t step = 0;  ///< of the unit's backward pass
};

/// How the gradients of one chunk are reduced: dense ones over dp x cp, those of experts over the
/// ranks with the same experts.
struct ChunkReduction {
  std::vector<GradientItem> items;  ///< in backward order
  std::vector<GradientBucket> dense, expert;
};

ChunkReduction chunk_reduction(const std::vector<PlacedUnit>& units, const Job& job,
                               std::int64_t dense_ranks, std::int64_t expert_ranks);

}  // namespace lockstep
