#include "generator/exact/reduction.h"

namespace lockstep {

ChunkReduction chunk_reduction(const std::vector<PlacedUnit>& units, const Job& job,
                               std::int64_t dense_ranks, std::int64_t expert_ranks) {
  ChunkReduction reduction;
  std::vector<std::int64_t> dense, expert;
  for (std::size_t unit = units.size(); unit-- > 0;) {
    const std::vector<FoldedStep>& steps = units[unit].unit->backward.steps;
    for (std::size_t step = 0; step < steps.size(); ++step) {
      const ParameterCount& ready = steps[step].ready;
      if (ready.dense > 0 || ready.expert > 0) {
        reduction.items.push_back({unit, step});
        dense.push_back(ready.dense);
        expert.push_back(ready.expert);
      }
    }
  }
  reduction.dense = make_buckets(dense, bucket_limit(job, dense_ranks));
  reduction.expert = make_buckets(expert, bucket_limit(job, expert_ranks));
  return reduction;
}

}  // namespace lockstep
