#include "simulator/collectives/algorithm.h"

namespace lockstep {
namespace {

constexpr CommType kOps[] = {CommType::kSendRecv};

/// Every rank sends the whole buffer to the next one, the last to the first (sendrecv_perf of
/// nccl-tests).
Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  Schedule schedule;
  schedule.op = request.op;
  schedule.ranks = shape.ranks;
  if (request.bytes == Bytes(0)) {
    return schedule;
  }
  schedule.reserve(shape.ranks);
  schedule.chunks = shape.ranks;
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank) {
    Transfer transfer;
    transfer.source = rank;
    transfer.destination = (rank + 1) % shape.ranks;
    transfer.chunk = rank;
    transfer.bytes = request.bytes;
    schedule.add(transfer, {});
  }
  return schedule;
}

}  // namespace

extern const CollectiveAlgorithm kShiftCollectiveAlgorithm = {
    "shift", "every rank sends to the next and receives from the last", kOps, build};

}  // namespace lockstep
