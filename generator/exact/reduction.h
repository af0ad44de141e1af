#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "generator/exact/buckets.h"
#include "generator/exact/stage_plan.h"

namespace lockstep {

/// A step of a chunk's backward pass that completes gradients.
struct GradientItem {
  std::size_t unit = 0;  ///< in forward order
  std::size_t step = 0;  ///< of the unit's backward pass, or of the part
  BackwardPart part = BackwardPart::kWhole;
};

/// How the gradients of one chunk are reduced: dense ones over dp x cp, those of experts over the
/// ranks with the same experts.
struct ChunkReduction {
  std::vector<GradientItem> items;  ///< in backward order
  std::vector<GradientBucket> dense, expert;

  /// The first item of a part; the number of items where it has none.
  std::size_t first_of(BackwardPart part) const;
};

/// `first`: is_first_chunk(). `split`: the backward pass comes in two parts, first that of the
/// input through all units. `cuts`: units that begin a new piece of the chunk, ascending; no bucket
/// goes across pieces, which are numbered from the chunk's first. Where pipelines are not cut alike
/// a piece behind the first is in a later virtual stage of some.
ChunkReduction chunk_reduction(const std::vector<PlacedUnit>& units, const Job& job, bool first,
                               bool split, std::span<const std::size_t> cuts = {});

}  // namespace lockstep
