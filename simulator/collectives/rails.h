#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/collectives/algorithm.h"
#include "simulator/collectives/building.h"

namespace lockstep {

/// A group as rails: rail h joins the h-th rank of every server (its heads); there are as many
/// rails as the server with the fewest ranks has. A rank further on in its server belongs to the
/// rail of its place modulo that number, behind the head.
struct Rails {
  std::vector<std::vector<std::int32_t>> servers;  ///< ranks of each server
  std::int32_t count = 0;
  std::vector<std::int32_t> rail;  ///< of each rank

  explicit Rails(const GroupShape& shape);
  std::int32_t size() const { return static_cast<std::int32_t>(servers.size()); }
  std::int32_t head(std::int32_t server, std::int32_t rail_index) const {
    return servers[static_cast<std::size_t>(server)][static_cast<std::size_t>(rail_index)];
  }
  /// The ranks of a server that belong to a rail.
  std::vector<std::int32_t> members(std::int32_t server, std::int32_t rail_index) const;
  /// Calls f(rank, head, rail) for every rank of a server and every other head of it.
  template <class F>
  void each_to_each(const std::vector<std::int32_t>& ranks, F&& f) const {
    for (std::int32_t shift = 0; shift < count; ++shift) {
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        const std::int32_t to = (static_cast<std::int32_t>(i) + shift) % count;
        const std::int32_t head = ranks[static_cast<std::size_t>(to)];
        if (head != ranks[i]) {
          f(ranks[i], head, to);
        }
      }
    }
  }
};

/// Appends a ring over `ring`: units[j] are the chunks that end (reduce-scatter) or start
/// (all-gather) at place j. Everything a place sends waits for what reached it in earlier rounds of
/// `rounds`. One slot a place where units are of one size, else one a step. The slots are told to
/// `rounds`, so that later rounds wait for them.
void add_rail_ring(Schedule& schedule, Rounds& rounds, std::span<const std::int32_t> ring,
                   const std::vector<std::vector<std::int32_t>>& units, bool reduce,
                   std::int32_t channel);

}  // namespace lockstep
