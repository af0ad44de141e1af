#include "simulator/collectives/rings.h"

namespace lockstep {
namespace {

constexpr CommType kOps[] = {CommType::kAllToAll};

/// Every rank sends to every other at once, without staging: n(n-1) transfers of S/n. Transfers
/// are listed, and numbered as channels, by round: in round d every rank sends to the d-th after
/// it.
Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  Schedule schedule;
  schedule.op = request.op;
  schedule.ranks = shape.ranks;
  if (request.bytes == Bytes(0)) {
    return schedule;
  }
  const std::int64_t n = shape.ranks;
  schedule.reserve(static_cast<double>(n * (n - 1)));
  schedule.chunks = static_cast<std::int32_t>(n * n);
  for (std::int64_t round = 1; round < n; ++round) {
    for (std::int64_t source = 0; source < n; ++source) {
      const std::int64_t destination = (source + round) % n;
      Transfer transfer;
      transfer.source = static_cast<std::int32_t>(source);
      transfer.destination = static_cast<std::int32_t>(destination);
      transfer.channel = static_cast<std::int32_t>(round - 1);
      transfer.chunk = static_cast<std::int32_t>(source * n + destination);
      transfer.bytes = part_size(request.bytes, n, destination, request.flavour);
      schedule.add(transfer, {});
    }
  }
  return schedule;
}

}  // namespace

extern const CollectiveAlgorithm kDirectCollectiveAlgorithm = {
    "direct", "every rank sends to every other at once", kOps, build};

}  // namespace lockstep
