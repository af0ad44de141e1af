#include <algorithm>
#include <bit>
#include <numeric>

#include "simulator/collectives/building.h"

namespace lockstep {
namespace {

constexpr CommType kOps[] = {CommType::kAllToAll};
constexpr std::int32_t kGroup = 8;   // NCCL's P2P_SCHEDULE_GROUP_SIZE
constexpr std::int32_t kWindow = 8;  // peers that a kernel works on at once

/// Ranks by groups of equal size: the largest divisor, up to eight, of every server's number.
struct Groups {
  std::vector<std::int32_t> ranks;  // group after group
  std::int32_t size = 1;
};

Groups groups_of(const GroupShape& shape) {
  Groups groups;
  std::int32_t divisor = 0;
  for (const auto& server : ranks_by_server(shape)) {
    divisor = std::gcd(divisor, static_cast<std::int32_t>(server.size()));
    groups.ranks.insert(groups.ranks.end(), server.begin(), server.end());
  }
  for (std::int32_t size = 2; size <= kGroup; ++size) {
    groups.size = divisor % size == 0 ? size : groups.size;
  }
  return groups;
}

/// NCCL's order of rounds (nccl.md section 8): group distances are the triangular numbers 0, 1, 3,
/// 6, … modulo the next power of two, which visit every number once; at each, every rank shifts
/// within the groups by 0, 1, ….
std::vector<std::int32_t> group_distances(std::int32_t groups) {
  const auto wrap = static_cast<std::int32_t>(std::bit_ceil(static_cast<std::uint32_t>(groups)));
  std::vector<std::int32_t> distances;
  for (std::int32_t round = 0, distance = 0; round < wrap;
       ++round, distance = (distance + round) & (wrap - 1)) {
    if (distance < groups) {
      distances.push_back(distance);
    }
  }
  return distances;
}

/// Every round each rank sends to one other and receives from one; up to eight rounds of a rank
/// are under way at once: a send waits for the send and the receive eight rounds before.
Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  Schedule schedule = empty_schedule(request, shape);
  if (request.bytes == Bytes(0)) {
    return schedule;
  }
  const std::int32_t n = shape.ranks;
  schedule.reserve(static_cast<double>(n) * (n - 1));
  set_shards(schedule, request);
  const Groups groups = groups_of(shape);
  const std::int32_t size = groups.size, count = n / size;
  using Recent = std::vector<std::int32_t>;  // slots, the latest last
  std::vector<Recent> sends(static_cast<std::size_t>(n)), receives(static_cast<std::size_t>(n));
  std::vector<SlotWait> waits;
  std::int32_t round = 0;
  for (const std::int32_t distance : group_distances(count)) {
    for (std::int32_t shift = 0; shift < size; ++shift) {
      if (distance == 0 && shift == 0) {
        continue;
      }
      const auto first = static_cast<std::int32_t>(schedule.slots.size());
      for (std::int32_t i = 0; i < n; ++i) {
        const std::int32_t group = (i / size + distance) % count;
        Slot slot;
        slot.source = groups.ranks[static_cast<std::size_t>(i)];
        slot.destination =
            groups.ranks[static_cast<std::size_t>(group) * static_cast<std::size_t>(size) +
                         static_cast<std::size_t>((i % size + shift) % size)];
        slot.channel = round % kWindow;
        slot.start = slot.source * n + slot.destination;
        if (!schedule.chunk_sizes.empty() && schedule.chunk_size(slot.start) == Bytes(0)) {
          continue;
        }
        waits.clear();
        for (const Recent* recent : {&sends[static_cast<std::size_t>(slot.source)],
                                     &receives[static_cast<std::size_t>(slot.source)]}) {
          if (recent->size() >= kWindow) {
            waits.push_back({(*recent)[recent->size() - kWindow], 0});
          }
        }
        schedule.add(slot, waits);
      }
      for (auto s = static_cast<std::size_t>(first); s < schedule.slots.size(); ++s) {
        const Slot& slot = schedule.slots[s];
        sends[static_cast<std::size_t>(slot.source)].push_back(static_cast<std::int32_t>(s));
        receives[static_cast<std::size_t>(slot.destination)].push_back(
            static_cast<std::int32_t>(s));
      }
      ++round;
    }
  }
  return schedule;
}

}  // namespace

extern const CollectiveAlgorithm kPairwiseCollectiveAlgorithm = {
    "pairwise", "NCCL's rounds of send and receive, eight at once", kOps, build};

}  // namespace lockstep
