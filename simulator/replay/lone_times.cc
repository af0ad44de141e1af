#include "simulator/replay/lone_times.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/index.h"

namespace lockstep {
namespace {

/// Transfers below which a collective is left to the events.
constexpr std::int64_t kFew = 64;

FlowGraph graph_of(const CommunicatorShape& shape) {
  FlowGraph graph;
  graph.capacity = shape.capacity;
  graph.term_begin = shape.term_begin;
  graph.term = shape.term;
  graph.wait_begin = shape.wait_begin;
  graph.wait = shape.wait;
  for (const CommunicatorShape::Slot& slot : shape.slots) {
    FlowGraph::Slot& same = graph.slots.emplace_back();
    same.bits = slot.bits;
    same.latency = slot.latency;
    same.start_latency = slot.start_latency;
    same.forward_latency = slot.forward_latency;
    same.count = slot.count;
    same.source = slot.source;
    same.destination = slot.destination;
  }
  return graph;
}

/// Sets of places, one for each slot.
class PlaceSets {
 public:
  PlaceSets(std::size_t sets, std::size_t places)
      : words_((places + 63) / 64), bits_(sets * words_, 0) {}
  void put(std::size_t set, std::int32_t place) {
    bits_[set * words_ + at(place) / 64] |= std::uint64_t{1} << (at(place) % 64);
  }
  bool has(std::size_t set, std::size_t place) const {
    return (bits_[set * words_ + place / 64] >> (place % 64) & 1) != 0;
  }
  /// Whether that put anything new into `set`.
  bool unite(std::size_t set, const PlaceSets& others, std::size_t other) {
    bool grown = false;
    for (std::size_t word = 0; word < words_; ++word) {
      std::uint64_t& mine = bits_[set * words_ + word];
      const std::uint64_t united = mine | others.bits_[other * words_ + word];
      grown = grown || united != mine;
      mine = united;
    }
    return grown;
  }

 private:
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

/// Whether no place finishes before all have entered: whose entries each slot's transfers wait for,
/// round by round.
bool all_wait_for_all(const CommunicatorShape& shape) {
  const std::size_t slots = shape.slots.size(), places = shape.shares.size();
  std::int32_t longest = 0, rounds = 0;
  for (const SlotWait& wait : shape.wait) {
    longest = std::max(longest, wait.lag);
  }
  PlaceSets none(slots, places);
  for (std::size_t i = 0; i < slots; ++i) {
    none.put(i, shape.slots[i].source);
    rounds = std::max(rounds, shape.slots[i].count);
  }
  // The sets after each of the last rounds; of a slot that has no more transfers those of its last.
  std::vector<PlaceSets> after(at(longest) + 1, none);
  for (std::int32_t k = 0; k < rounds; ++k) {
    PlaceSets& now = after[at(k) % after.size()];
    now = k == 0 ? none : after[at(k - 1) % after.size()];
    // Those that wait for the same round come after what they wait for, whatever their order here.
    for (bool grown = true; grown;) {
      grown = false;
      for (std::size_t i = 0; i < slots; ++i) {
        if (k >= shape.slots[i].count) {
          continue;
        }
        for (const SlotWait& wait : shape.waits(i)) {
          if (wait.lag <= k) {
            grown = now.unite(i, after[at(k - wait.lag) % after.size()], at(wait.slot)) || grown;
          }
        }
      }
    }
  }
  const PlaceSets& last = after[at(rounds - 1) % after.size()];
  PlaceSets finish(places, places);
  for (std::size_t i = 0; i < slots; ++i) {
    finish.unite(at(shape.slots[i].source), last, i);
    finish.unite(at(shape.slots[i].destination), last, i);
  }
  for (std::size_t place = 0; place < places; ++place) {
    for (std::size_t other = 0; other < places; ++other) {
      if (!finish.has(place, other)) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

std::unique_ptr<LoneTimes> LoneTimes::of(const CommunicatorShape& shape) {
  std::int64_t transfers = 0;
  for (const CommunicatorShape::Slot& slot : shape.slots) {
    if (slot.source < 0 || slot.destination < 0 || slot.count < 1 || slot.leave < 1 ||
        slot.reach < 1) {
      return nullptr;
    }
    transfers += slot.count;
  }
  if (transfers < kFew) {
    return nullptr;
  }
  std::optional<PreparedRecurrence> recurrence = PreparedRecurrence::of(graph_of(shape));
  if (!recurrence || !all_wait_for_all(shape)) {
    return nullptr;
  }
  std::unique_ptr<LoneTimes> lone(new LoneTimes(std::move(*recurrence)));
  Times times;
  if (!lone->tell(std::vector<Time>(shape.shares.size()),
                  std::vector<std::int32_t>(shape.slots.size()), times)) {
    return nullptr;
  }
  lone->duration_ = std::ranges::max(times.finish);
  return lone;
}

bool LoneTimes::tell(std::span<const Time> entry, std::span<const std::int32_t> done,
                     Times& times) const {
  const std::vector<FlowGraph::Slot>& slots = recurrence_.graph().slots;
  if (!recurrence_.run(slot_entries(entry), done, std::ranges::max(entry), times.ends)) {
    return false;
  }
  times.finish.assign(entry.begin(), entry.end());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    Time& from = times.finish[lockstep::at(slots[i].source)];
    from = std::max(from, times.ends.sent[i]);
    Time& to = times.finish[lockstep::at(slots[i].destination)];
    to = std::max(to, times.ends.delivered[i]);
  }
  return true;
}

std::vector<LoneTimes::SlotState> LoneTimes::at(std::span<const Time> entry,
                                                std::span<const std::int32_t> done,
                                                Time moment) const {
  return recurrence_.at(slot_entries(entry), done, moment);
}

std::vector<Time> LoneTimes::slot_entries(std::span<const Time> entry) const {
  std::vector<Time> of_slots;
  of_slots.reserve(recurrence_.graph().slots.size());
  for (const FlowGraph::Slot& slot : recurrence_.graph().slots) {
    of_slots.push_back(entry[static_cast<std::size_t>(slot.source)]);
  }
  return of_slots;
}

}  // namespace lockstep
