#include "simulator/replay/prepared_schedules.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/index.h"

namespace lockstep {
namespace {

/// Bytes of schedules above which those that no run uses are dropped.
constexpr std::size_t kBudget = std::size_t{256} << 20;

/// Turns per-slot counts (stored one slot up) into CSR begins and returns the cursor to fill with.
std::vector<std::int32_t> to_begins(std::vector<std::int32_t>& counts) {
  for (std::size_t i = 1; i < counts.size(); ++i) {
    counts[i] += counts[i - 1];
  }
  return {counts.begin(), counts.end() - 1};
}

/// Of all slots, where these have equally many transfers, else 0.
std::int32_t steps_of(const Schedule& schedule) {
  const auto is_first = [&](const Slot& slot) {
    return slot.count == schedule.slots.front().count;
  };
  return !schedule.slots.empty() && std::ranges::all_of(schedule.slots, is_first)
             ? schedule.slots.front().count
             : 0;
}

/// What each transfer puts on the wire, where that is the same for all, else -1.
Bytes bytes_of_each(const Schedule& schedule) {
  const auto is_first = [&](const Slot& slot) { return slot.run == schedule.slots.front().run; };
  const bool same = !schedule.slots.empty() && schedule.chunk_sizes.empty() &&
                    schedule.nvswitch_percent == 100 &&
                    std::ranges::all_of(schedule.slots, is_first);
  return same ? schedule.bytes(schedule.slots.front(), 0) : Bytes(-1);
}

/// What running a schedule needs. O(slots and their waits).
PreparedSchedule prepared_from(std::shared_ptr<const Schedule> of) {
  PreparedSchedule prepared;
  prepared.schedule = std::move(of);
  const Schedule& schedule = *prepared.schedule;
  const std::size_t count = schedule.slots.size();
  prepared.steps = steps_of(schedule);
  prepared.bytes_each = bytes_of_each(schedule);
  prepared.shares.assign(at(schedule.ranks), 0);
  prepared.waiter_begin.assign(count + 1, 0);
  prepared.from_begin.assign(at(schedule.places()) + 1, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const Slot& slot = schedule.slots[i];
    for (const std::int32_t place : {slot.source, slot.destination}) {
      if (place < schedule.ranks) {
        prepared.shares[at(place)] += slot.count;
      }
    }
    for (const SlotWait& wait : schedule.waits(i)) {
      ++prepared.waiter_begin[at(wait.slot) + 1];
    }
    ++prepared.from_begin[at(slot.source) + 1];
  }
  std::vector<std::int32_t> next_waiter = to_begins(prepared.waiter_begin);
  std::vector<std::int32_t> next_from = to_begins(prepared.from_begin);
  prepared.waiter.resize(schedule.wait.size());
  prepared.from.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto index = static_cast<std::int32_t>(i);
    for (const SlotWait& wait : schedule.waits(i)) {
      prepared.waiter[at(next_waiter[at(wait.slot)]++)] = index;
    }
    const auto source = at(schedule.slots[i].source);
    prepared.from[at(next_from[source]++)] = index;
  }
  return prepared;
}

}  // namespace

std::size_t PreparedSchedule::memory_bytes() const {
  return schedule->memory_bytes() + (waiter.size() + waiter_begin.size() + from.size()) * 4 +
         shares.size() * 8;
}

PreparedSchedules::PreparedSchedules(const RankPrograms& work,
                                     const std::vector<NodeId>& node_of_rank,
                                     const Topology& topology, const ScheduleSource& source,
                                     const ReplayOptions& options)
    : work_(work),
      node_of_rank_(node_of_rank),
      topology_(topology),
      fabrics_(topology),
      source_(source),
      options_(options) {
  for (const CommFamily& family : work.families) {
    shape_of_group_.emplace_back(family.groups().size(), -1);
  }
}

std::int32_t PreparedSchedules::shape_of(std::int32_t family, std::int32_t group,
                                         const std::vector<std::int32_t>& members) {
  std::int32_t* known = family < 0 ? nullptr : &shape_of_group_[at(family)][at(group)];
  if (known != nullptr && *known >= 0) {
    return *known;
  }
  std::vector<std::int32_t> servers;
  servers.reserve(members.size());
  for (const std::int32_t rank : members) {
    const NodeId node = node_of_rank_[at(rank)];
    servers.push_back(topology_.nodes[node.index()].server);
  }
  const auto next = static_cast<std::int32_t>(shapes_.size());
  const std::int32_t shape = shapes_.try_emplace(fabrics_.shape_of(servers), next).first->second;
  if (known != nullptr) {
    *known = shape;
  }
  return shape;
}

std::shared_ptr<PreparedSchedule> PreparedSchedules::of(const ProgramOp& op, std::int32_t family,
                                                        std::int32_t group,
                                                        const std::vector<std::int32_t>& members) {
  const bool tensor = options_.tensor_schedules && op.family >= 0 &&
                      work_.families[at(op.family)].kind() == GroupKind::kTp;
  const std::int32_t shape = shape_of(family, group, members);
  std::shared_ptr<PreparedSchedule>& known = known_[{op.comm, op.bytes, shape, tensor}];
  if (known) {
    return known;
  }
  const GroupShape& ranks = std::ranges::find_if(shapes_, [&](const auto& entry) {
                              return entry.second == shape;
                            })->first;
  known = std::make_shared<PreparedSchedule>(
      prepared_from((tensor ? options_.tensor_schedules : source_)(op.comm, op.bytes, ranks)));
  LOCKSTEP_CHECK(known->schedule->ranks == ranks.ranks, "a schedule is built for the group's size");
  std::shared_ptr<PreparedSchedule> result = known;
  bytes_ += result->memory_bytes();
  if (bytes_ > kBudget) {
    forget_unused();
  }
  return result;
}

void PreparedSchedules::forget_unused() {
  std::erase_if(known_, [](const auto& entry) { return entry.second.use_count() == 1; });
  bytes_ = 0;
  for (const auto& [key, prepared] : known_) {
    bytes_ += prepared->memory_bytes();
  }
}

}  // namespace lockstep
