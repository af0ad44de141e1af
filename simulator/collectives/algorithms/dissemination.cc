#include "simulator/collectives/building.h"

namespace lockstep {
namespace {

constexpr CommType kOps[] = {CommType::kBarrier};

/// Hensgen, Finkel and Manber: Two algorithms for barrier synchronization, 1988. In round k every
/// rank that has heard all earlier rounds sends one byte to the rank 2^k after it; after
/// ceil(log2 n) rounds each has heard, directly or not, of all.
Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  Schedule schedule = empty_schedule(request, shape);
  schedule.chunks = 1;
  schedule.chunk_bytes = Bytes(1);
  const std::int64_t n = shape.ranks;
  std::vector<SlotWait> heard;
  for (std::int64_t round = 0; (std::int64_t{1} << round) < n; ++round) {
    for (std::int64_t rank = 0; rank < n; ++rank) {
      heard.clear();
      for (std::int64_t earlier = 0; earlier < round; ++earlier) {
        const std::int64_t from = (rank + n - (std::int64_t{1} << earlier)) % n;
        heard.push_back({static_cast<std::int32_t>(earlier * n + from), 0});
      }
      Slot slot;
      slot.source = static_cast<std::int32_t>(rank);
      slot.destination = static_cast<std::int32_t>((rank + (std::int64_t{1} << round)) % n);
      schedule.add(slot, heard);
    }
  }
  return schedule;
}

}  // namespace

extern const CollectiveAlgorithm kDisseminationCollectiveAlgorithm = {
    "dissemination", "round k tells the rank 2^k further on", kOps, build};

}  // namespace lockstep
