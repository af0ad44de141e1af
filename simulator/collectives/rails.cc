#include "simulator/collectives/rails.h"

#include <algorithm>

#include "base/index.h"

namespace lockstep {

Rails::Rails(const GroupShape& shape)
    : servers(ranks_by_server(shape)),
      count(fewest_a_server(shape)),
      rail(static_cast<std::size_t>(shape.ranks)) {
  for (const auto& ranks : servers) {
    for (std::size_t place = 0; place < ranks.size(); ++place) {
      rail[at(ranks[place])] = static_cast<std::int32_t>(place) % count;
    }
  }
}

std::vector<std::int32_t> Rails::members(std::int32_t server, std::int32_t rail_index) const {
  std::vector<std::int32_t> result;
  for (const std::int32_t rank : servers[at(server)]) {
    if (rail[at(rank)] == rail_index) {
      result.push_back(rank);
    }
  }
  return result;
}

void add_rail_ring(Schedule& schedule, Rounds& rounds, std::span<const std::int32_t> ring,
                   const std::vector<std::vector<std::int32_t>>& units, bool reduce,
                   std::int32_t channel) {
  const auto n = static_cast<std::int32_t>(ring.size());
  const bool equal = std::ranges::all_of(
      units, [&](const auto& unit) { return unit.size() == units.front().size(); });
  std::vector<std::int32_t> cycle, begin;
  for (const auto& unit : units) {
    begin.push_back(static_cast<std::int32_t>(cycle.size()));
    cycle.insert(cycle.end(), unit.begin(), unit.end());
  }
  const std::int32_t cycle_index = schedule.add_cycle(cycle);
  const auto first_slot = static_cast<std::int32_t>(schedule.slots.size());
  const std::int32_t slots_a_place = equal ? 1 : n - 1;
  // Place j passes on, in step k, the unit of place j - k, or when reducing that of j - 1 - k.
  for (std::int32_t place = 0; place < n; ++place) {
    for (std::int32_t step = 0; step < slots_a_place; ++step) {
      const std::int32_t unit = ((place - step - (reduce ? 1 : 0)) % n + n) % n;
      Slot slot;
      slot.source = ring[at(place)];
      slot.destination = ring[at((place + 1) % n)];
      slot.channel = channel;
      slot.cycle = cycle_index;
      slot.start = begin[at(unit)];
      slot.run = static_cast<std::int32_t>(units[at(unit)].size());
      slot.step = equal ? -slot.run : 0;
      slot.count = equal ? n - 1 : 1;
      slot.reduces = reduce ? slot.count : 0;
      const auto earlier = rounds.waits(slot.source);
      std::vector<SlotWait> waits(earlier.begin(), earlier.end());
      const std::int32_t before = first_slot + (place + n - 1) % n * slots_a_place;
      if (equal) {
        waits.push_back({before, 1});
      } else if (step > 0) {
        waits.push_back({before + step - 1, 0});
      }
      schedule.add(slot, waits);
    }
  }
  for (std::int32_t place = 0; place < n; ++place) {
    for (std::int32_t step = 0; step < slots_a_place; ++step) {
      rounds.arrived(ring[at((place + 1) % n)], first_slot + place * slots_a_place + step);
    }
  }
}

}  // namespace lockstep
