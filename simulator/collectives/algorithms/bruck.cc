#include <algorithm>

#include "simulator/collectives/building.h"

namespace lockstep {
namespace {

constexpr CommType kOps[] = {CommType::kAllGather, CommType::kAllToAll};

/// In round k rank r sends its neighbour 2^k before it the min(2^k, n - 2^k) shards that it has:
/// its own and the following ones.
void all_gather(Schedule& schedule) {
  const std::int32_t n = schedule.ranks;
  Rounds rounds(schedule);
  for (std::int32_t distance = 1; distance < n; distance *= 2) {
    for (std::int32_t rank = 0; rank < n; ++rank) {
      rounds.send(rank, (rank - distance + n) % n, rank, std::min(distance, n - distance), false);
    }
    rounds.next_round();
  }
}

/// What rank s sends to rank s + d travels along the bits of d: in round k, if bit k of d is set,
/// by 2^k. Before that round it is 2^k - 1 bits' worth from home: at s + (d mod 2^k).
void all_to_all(Schedule& schedule) {
  const std::int32_t n = schedule.ranks;
  Rounds rounds(schedule);
  std::vector<std::int32_t> chunks;
  for (std::int32_t distance = 1; distance < n; distance *= 2) {
    for (std::int32_t rank = 0; rank < n; ++rank) {
      chunks.clear();
      for (std::int32_t d = distance; d < n; ++d) {
        if ((d & distance) != 0) {
          const std::int32_t from = ((rank - d % distance) % n + n) % n;
          chunks.push_back(from * n + (from + d) % n);
        }
      }
      rounds.send(rank, (rank + distance) % n, chunks, false);
    }
    rounds.next_round();
  }
}

/// Bruck, Ho, Kipnis, Upfal, Weathersby: Efficient algorithms for all-to-all communications in
/// multiport message-passing systems, 1997: ceil(log2 n) rounds for any n.
Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  Schedule schedule = empty_schedule(request, shape);
  if (request.bytes == Bytes(0)) {
    return schedule;
  }
  set_shards(schedule, request);
  if (request.op == CommType::kAllGather) {
    all_gather(schedule);
  } else {
    // n/2 entries of a cycle in each of n log2 n slots.
    schedule.reserve(static_cast<double>(shape.ranks) * shape.ranks);
    all_to_all(schedule);
  }
  return schedule;
}

}  // namespace

extern const CollectiveAlgorithm kBruckCollectiveAlgorithm = {
    "bruck", "ceil(log2 n) rounds at doubling distances", kOps, build};

}  // namespace lockstep
