#include "simulator/collectives/algorithm.h"

namespace lockstep {
namespace {

constexpr CommType kOps[] = {CommType::kSendRecv};

/// Rank 0 sends the buffer to rank 1: a lone send and receive, as between pipeline stages.
Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  Schedule schedule;
  schedule.op = request.op;
  schedule.ranks = shape.ranks;
  if (request.bytes == Bytes(0)) {
    return schedule;
  }
  schedule.chunks = 1;
  Transfer transfer;
  transfer.destination = 1;
  transfer.bytes = request.bytes;
  schedule.add(transfer, {});
  return schedule;
}

}  // namespace

extern const CollectiveAlgorithm kSendCollectiveAlgorithm = {"send", "rank 0 sends to rank 1", kOps,
                                                             build};

}  // namespace lockstep
