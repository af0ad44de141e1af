#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace lockstep::testing {

/// A max-min system in whole numbers, as MaxMin(1) solves it: coefficients are numbers of copies.
struct WholeSystem {
  struct Row {
    std::vector<std::size_t> constraints;
    std::int64_t copies = 1;
    std::int64_t bound = std::numeric_limits<std::int64_t>::max();
  };
  std::vector<std::int64_t> capacities;
  std::vector<Row> rows;
};

/// The solution by its definition (max_min.h, "Whole numbers"), one level after the other: find the
/// lowest level at which a constraint is full or a bound is met; whoever is there stays. It knows
/// nothing of what was before. O(levels * terms). Shares no code with MaxMin.
inline std::vector<std::int64_t> whole_max_min(const WholeSystem& system) {
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> rates(system.rows.size(), -1);
  for (;;) {
    std::vector<std::int64_t> room = system.capacities;
    std::vector<std::int64_t> open(room.size());
    std::int64_t level = kNever;
    for (std::size_t v = 0; v < rates.size(); ++v) {
      for (const std::size_t c : system.rows[v].constraints) {
        room[c] -= rates[v] < 0 ? 0 : system.rows[v].copies * rates[v];
        open[c] += rates[v] < 0 ? system.rows[v].copies : 0;
      }
      level = rates[v] < 0 ? std::min(level, system.rows[v].bound) : level;
    }
    const auto full_at = [&](std::size_t c) { return open[c] > 0 ? room[c] / open[c] : kNever; };
    for (std::size_t c = 0; c < room.size(); ++c) {
      level = std::min(level, full_at(c));
    }
    if (level == kNever) {
      return rates;
    }
    for (std::size_t v = 0; v < rates.size(); ++v) {
      const WholeSystem::Row& row = system.rows[v];
      const bool stays = row.bound == level || std::ranges::any_of(row.constraints, [&](auto c) {
                           return full_at(c) == level;
                         });
      if (rates[v] < 0 && stays) {
        rates[v] = level;
      }
    }
  }
}

}  // namespace lockstep::testing
