#include "generator/exact/reduction.h"

#include <algorithm>

namespace lockstep {

std::size_t ChunkReduction::first_of(BackwardPart part) const {
  return static_cast<std::size_t>(std::ranges::find(items, part, &GradientItem::part) -
                                  items.begin());
}

namespace {

/// Buckets of runs of items, one run a piece.
std::vector<GradientBucket> buckets_by_piece(std::span<const std::int64_t> parameters,
                                             std::span<const std::size_t> pieces, const Job& job,
                                             bool first) {
  std::vector<GradientBucket> all;
  for (std::size_t begin = 0; begin < pieces.size();) {
    std::size_t end = begin;
    while (end < pieces.size() && pieces[end] == pieces[begin]) {
      ++end;
    }
    const std::int64_t limit = bucket_limit(job, first && pieces[begin] == 0);
    for (GradientBucket bucket : make_buckets(parameters.subspan(begin, end - begin), limit)) {
      bucket.first += begin;
      bucket.last += begin;
      bucket.piece = pieces[begin];
      all.push_back(bucket);
    }
    begin = end;
  }
  return all;
}

}  // namespace

ChunkReduction chunk_reduction(const std::vector<PlacedUnit>& units, const Job& job, bool first,
                               bool split, std::span<const std::size_t> cuts) {
  ChunkReduction reduction;
  std::vector<std::int64_t> dense, expert;
  std::vector<std::size_t> pieces;  // of each item
  const auto collect = [&](BackwardPart part) {
    for (std::size_t unit = units.size(); unit-- > 0;) {
      const std::vector<FoldedStep>& steps = units[unit].unit->pass({true, 0, 0, part}).steps;
      for (std::size_t step = 0; step < steps.size(); ++step) {
        const ParameterCount& ready = steps[step].ready;
        if (ready.dense > 0 || ready.expert > 0) {
          reduction.items.push_back({unit, step, part});
          dense.push_back(ready.dense);
          expert.push_back(ready.expert);
          pieces.push_back(
              static_cast<std::size_t>(std::ranges::upper_bound(cuts, unit) - cuts.begin()));
        }
      }
    }
  };
  if (split) {
    collect(BackwardPart::kInput);
    collect(BackwardPart::kWeights);
  } else {
    collect(BackwardPart::kWhole);
  }
  reduction.dense = buckets_by_piece(dense, pieces, job, first);
  reduction.expert = buckets_by_piece(expert, pieces, job, first);
  return reduction;
}

}  // namespace lockstep
