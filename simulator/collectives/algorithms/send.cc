#include "simulator/collectives/building.h"

namespace lockstep {
namespace {

constexpr CommType kOps[] = {CommType::kSendRecv};

/// Rank 0 sends the buffer to rank 1: a lone send and receive, as between pipeline stages.
Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  Schedule schedule = empty_schedule(request, shape);
  if (request.bytes == Bytes(0)) {
    return schedule;
  }
  schedule.chunks = 1;
  schedule.chunk_bytes = request.bytes;
  Slot slot;
  slot.destination = 1;
  schedule.add(slot, {});
  return schedule;
}

}  // namespace

extern const CollectiveAlgorithm kSendCollectiveAlgorithm = {"send", "rank 0 sends to rank 1", kOps,
                                                             build};

}  // namespace lockstep
