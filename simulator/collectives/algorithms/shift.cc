#include "simulator/collectives/building.h"

namespace lockstep {
namespace {

constexpr CommType kOps[] = {CommType::kSendRecv};

/// Every rank sends the whole buffer to the next one, the last to the first (sendrecv_perf of
/// nccl-tests).
Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  Schedule schedule = empty_schedule(request, shape);
  if (request.bytes == Bytes(0)) {
    return schedule;
  }
  schedule.reserve(shape.ranks);
  schedule.chunks = shape.ranks;
  schedule.chunk_bytes = request.bytes;
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank) {
    Slot slot;
    slot.source = rank;
    slot.destination = (rank + 1) % shape.ranks;
    slot.start = rank;
    schedule.add(slot, {});
  }
  return schedule;
}

}  // namespace

extern const CollectiveAlgorithm kShiftCollectiveAlgorithm = {
    "shift", "every rank sends to the next and receives from the last", kOps, build};

}  // namespace lockstep
