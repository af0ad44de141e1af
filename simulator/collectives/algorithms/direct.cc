#include "simulator/collectives/building.h"

namespace lockstep {
namespace {

constexpr CommType kOps[] = {CommType::kAllToAll};

Slot slot_of(std::int32_t source, std::int32_t round, std::int32_t n) {
  Slot slot;
  slot.source = source;
  slot.destination = (source + round) % n;
  slot.channel = round - 1;
  slot.start = source * n + slot.destination;
  return slot;
}

/// Every rank sends to every other at once, without staging: n(n-1) transfers of S/n. They
/// are listed, and numbered as channels, by round: in round d every rank sends to the d-th after
/// it.
Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  Schedule schedule = empty_schedule(request, shape);
  if (request.bytes == Bytes(0)) {
    return schedule;
  }
  const std::int32_t n = shape.ranks;
  schedule.reserve(static_cast<double>(n) * (n - 1));
  set_shards(schedule, request);
  for (std::int32_t round = 1; round < n; ++round) {
    for (std::int32_t source = 0; source < n; ++source) {
      const Slot slot = slot_of(source, round, n);
      if (schedule.chunk_sizes.empty() || schedule.chunk_size(slot.start) > Bytes(0)) {
        schedule.add(slot, {});
      }
    }
  }
  return schedule;
}

Schedule build_leaving(const CollectiveRequest& request, const GroupShape& shape,
                       std::int32_t rank) {
  Schedule schedule = empty_schedule(request, shape);
  if (request.bytes == Bytes(0)) {
    return schedule;
  }
  set_shards(schedule, request);
  for (std::int32_t round = 1; round < shape.ranks; ++round) {
    schedule.add(slot_of(rank, round, shape.ranks), {});
  }
  return schedule;
}

}  // namespace

extern const CollectiveAlgorithm kDirectCollectiveAlgorithm = {
    "direct", "every rank sends to every other at once", kOps, build, build_leaving};

}  // namespace lockstep
