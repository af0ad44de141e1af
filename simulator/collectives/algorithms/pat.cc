#include <bit>

#include "simulator/collectives/building.h"

namespace lockstep {
namespace {

constexpr CommType kOps[] = {CommType::kAllGather, CommType::kReduceScatter};

/// Jeaugey: PAT: a new algorithm for all-gather and reduce-scatter operations at scale, 2025. Every
/// shard has a binomial tree of its own: in an all-gather it goes from rank s to s + d by the bits
/// of d, the highest first, so that the farthest hops carry one shard and the nearest carry half
/// of them, together. A reduce-scatter is the same backwards.
Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  require_even(request, "pat");
  Schedule schedule = empty_schedule(request, shape);
  if (request.bytes == Bytes(0)) {
    return schedule;
  }
  set_shards(schedule, request);
  const std::int32_t n = shape.ranks;
  schedule.reserve(static_cast<double>(n) * n);  // entries of cycles
  const bool gather = request.op == CommType::kAllGather;
  const auto top = static_cast<std::int32_t>(std::bit_ceil(static_cast<std::uint32_t>(n)) / 2);
  Rounds rounds(schedule);
  std::vector<std::int32_t> shards;
  for (std::int32_t i = 1; i <= top; i *= 2) {
    const std::int32_t distance = gather ? top / i : i;
    for (std::int32_t rank = 0; rank < n; ++rank) {
      shards.clear();
      for (std::int32_t d = 0; d + distance < n; d += 2 * distance) {
        shards.push_back((rank - d + n) % n);
      }
      const std::int32_t far = (rank + distance) % n;
      rounds.send(gather ? rank : far, gather ? far : rank, shards, !gather);
    }
    rounds.next_round();
  }
  return schedule;
}

}  // namespace

extern const CollectiveAlgorithm kPatCollectiveAlgorithm = {
    "pat", "parallel aggregated trees: log2 n steps, the far ones small", kOps, build};

}  // namespace lockstep
