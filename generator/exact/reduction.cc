#include "generator/exact/reduction.h"

#include <algorithm>

namespace lockstep {

std::size_t ChunkReduction::first_of(BackwardPart part) const {
  return static_cast<std::size_t>(std::ranges::find(items, part, &GradientItem::part) -
                                  items.begin());
}

ChunkReduction chunk_reduction(const std::vector<PlacedUnit>& units, const Job& job,
                               std::int64_t dense_ranks, std::int64_t expert_ranks, bool split) {
  ChunkReduction reduction;
  std::vector<std::int64_t> dense, expert;
  const auto collect = [&](BackwardPart part) {
    for (std::size_t unit = units.size(); unit-- > 0;) {
      const std::vector<FoldedStep>& steps = units[unit].unit->pass({true, 0, 0, part}).steps;
      for (std::size_t step = 0; step < steps.size(); ++step) {
        const ParameterCount& ready = steps[step].ready;
        if (ready.dense > 0 || ready.expert > 0) {
          reduction.items.push_back({unit, step, part});
          dense.push_back(ready.dense);
          expert.push_back(ready.expert);
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
  reduction.dense = make_buckets(dense, bucket_limit(job, dense_ranks));
  reduction.expert = make_buckets(expert, bucket_limit(job, expert_ranks));
  return reduction;
}

}  // namespace lockstep
