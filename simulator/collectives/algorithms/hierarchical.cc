#include <algorithm>

#include "simulator/collectives/building.h"
#include "simulator/collectives/rails.h"
#include "simulator/collectives/rings.h"

namespace lockstep {
namespace {

constexpr CommType kOps[] = {CommType::kAllReduce, CommType::kAllGather, CommType::kReduceScatter,
                             CommType::kAllToAll};

using Chunks = std::vector<std::int32_t>;

/// Tier by tier, as in Cho, Finkler, Kung, Hunter: BlueConnect, 2019, and DeepSpeed's hierarchical
/// all-to-all: within a server everyone exchanges with everyone at once, between servers only
/// ranks of one rail talk (rails.h), so that what crosses the network is sent once and stays on its
/// rail.
class Build {
 public:
  Build(const CollectiveRequest& request, const GroupShape& shape)
      : rails_(shape), server_(shape.server), schedule_(empty_schedule(request, shape)) {
    if (request.op == CommType::kAllReduce) {
      schedule_.chunks = rails_.count * rails_.size();
      schedule_.chunk_bytes = part_size(request.bytes, schedule_.chunks, request.flavour);
    } else {
      set_shards(schedule_, request);
    }
  }

  Schedule all_reduce() {
    const std::int32_t servers = rails_.size();
    Rounds rounds(schedule_);
    for (const auto& ranks : rails_.servers) {  // each part to its head, which adds it
      rails_.each_to_each(ranks, [&](std::int32_t from, std::int32_t to, std::int32_t rail) {
        rounds.send(from, to, rail * servers, servers, true);
      });
    }
    rounds.next_round();
    if (servers > 1) {
      for (std::int32_t rail = 0; rail < rails_.count; ++rail) {
        std::vector<Chunks> units;
        units.reserve(static_cast<std::size_t>(servers));
        for (std::int32_t server = 0; server < servers; ++server) {
          units.push_back({rail * servers + server});
        }
        ring(rounds, rail, units, true);
        ring(rounds, rail, units, false);
      }
    }
    for (const auto& ranks : rails_.servers) {
      rails_.each_to_each(ranks, [&](std::int32_t to, std::int32_t from, std::int32_t rail) {
        rounds.send(from, to, rail * servers, servers, false);
      });
    }
    return std::move(schedule_);
  }

  /// Shards go round the rails, then every head tells its server what its rail brought.
  Schedule all_gather() {
    Rounds rounds(schedule_);
    behind_heads(
        [&](std::int32_t rank, std::int32_t head) { rounds.send(rank, head, rank, 1, false); });
    rounds.next_round();
    rings(rounds, false);
    for (const auto& ranks : rails_.servers) {
      rails_.each_to_each(ranks, [&](std::int32_t to, std::int32_t from, std::int32_t rail) {
        Chunks chunks = of_rail(rail);
        std::erase(chunks, to);
        rounds.send(from, to, chunks, false);
      });
    }
    return std::move(schedule_);
  }

  /// All-gather backwards: everyone adds its part for a rail to the local head's; then the rails.
  Schedule reduce_scatter() {
    Rounds rounds(schedule_);
    for (const auto& ranks : rails_.servers) {
      rails_.each_to_each(ranks, [&](std::int32_t from, std::int32_t to, std::int32_t rail) {
        rounds.send(from, to, of_rail(rail), true);
      });
    }
    rounds.next_round();
    rings(rounds, true);
    behind_heads(
        [&](std::int32_t rank, std::int32_t head) { rounds.send(head, rank, rank, 1, false); });
    return std::move(schedule_);
  }

  /// What leaves the server goes to the local head of the receiver's rail, from there to that
  /// rail's head in the receiver's server. What stays goes directly.
  Schedule all_to_all() {
    const std::int32_t n = schedule_.ranks, servers = rails_.size();
    Rounds rounds(schedule_);
    for (std::int32_t server = 0; server < servers; ++server) {
      const auto& ranks = rails_.servers[static_cast<std::size_t>(server)];
      rails_.each_to_each(ranks, [&](std::int32_t from, std::int32_t to, std::int32_t rail) {
        Chunks chunks;
        for (const std::int32_t receiver : of_rail(rail)) {
          if (server_of(receiver) != server || receiver == to) {
            chunks.push_back(from * n + receiver);
          }
        }
        rounds.send(from, to, chunks, false);
      });
      for (const std::int32_t from : ranks) {  // to ranks that are no heads
        for (std::size_t i = static_cast<std::size_t>(rails_.count); i < ranks.size(); ++i) {
          if (ranks[i] != from) {
            rounds.send(from, ranks[i], from * n + ranks[i], 1, false);
          }
        }
      }
    }
    rounds.next_round();
    for (std::int32_t shift = 1; shift < servers; ++shift) {
      for (std::int32_t server = 0; server < servers; ++server) {
        for (std::int32_t rail = 0; rail < rails_.count; ++rail) {
          const std::int32_t other = (server + shift) % servers;
          Chunks chunks;
          for (const std::int32_t receiver : rails_.members(other, rail)) {
            for (const std::int32_t from : rails_.servers[static_cast<std::size_t>(server)]) {
              chunks.push_back(from * n + receiver);
            }
          }
          rounds.send(rails_.head(server, rail), rails_.head(other, rail), chunks, false);
        }
      }
    }
    rounds.next_round();
    behind_heads([&](std::int32_t rank, std::int32_t head) {
      Chunks chunks;
      for (std::int32_t from = 0; from < n; ++from) {
        if (server_of(from) != server_of(rank)) {
          chunks.push_back(from * n + rank);
        }
      }
      rounds.send(head, rank, chunks, false);
    });
    return std::move(schedule_);
  }

 private:
  /// Calls f(rank, head) for every rank that is no head, with the head of its rail.
  template <class F>
  void behind_heads(F&& f) const {
    for (const auto& ranks : rails_.servers) {
      for (auto i = static_cast<std::size_t>(rails_.count); i < ranks.size(); ++i) {
        f(ranks[i],
          ranks[static_cast<std::size_t>(rails_.rail[static_cast<std::size_t>(ranks[i])])]);
      }
    }
  }
  Chunks of_rail(std::int32_t rail) const {
    Chunks ranks;
    for (std::int32_t server = 0; server < rails_.size(); ++server) {
      const Chunks members = rails_.members(server, rail);
      ranks.insert(ranks.end(), members.begin(), members.end());
    }
    return ranks;
  }
  std::int32_t server_of(std::int32_t rank) const {
    return server_[static_cast<std::size_t>(rank)];
  }
  void ring(Rounds& rounds, std::int32_t rail, const std::vector<Chunks>& units, bool reduce) {
    Chunks heads;
    for (std::int32_t server = 0; server < rails_.size(); ++server) {
      heads.push_back(rails_.head(server, rail));
    }
    add_rail_ring(schedule_, rounds, heads, units, reduce, rail);
  }
  void rings(Rounds& rounds, bool reduce) {
    for (std::int32_t rail = 0; rails_.size() > 1 && rail < rails_.count; ++rail) {
      std::vector<Chunks> units;
      units.reserve(static_cast<std::size_t>(rails_.size()));
      for (std::int32_t server = 0; server < rails_.size(); ++server) {
        units.push_back(rails_.members(server, rail));
      }
      ring(rounds, rail, units, reduce);
    }
  }

  Rails rails_;
  std::vector<std::int32_t> server_;
  Schedule schedule_;
};

Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  if (request.op != CommType::kAllToAll) {
    require_even(request, "hierarchical");
  }
  if (request.bytes == Bytes(0)) {
    return empty_schedule(request, shape);
  }
  Build build(request, shape);
  switch (request.op) {
    case CommType::kAllReduce:
      return build.all_reduce();
    case CommType::kAllGather:
      return build.all_gather();
    case CommType::kReduceScatter:
      return build.reduce_scatter();
    default:
      return build.all_to_all();
  }
}

}  // namespace

extern const CollectiveAlgorithm kHierarchicalCollectiveAlgorithm = {
    "hierarchical", "within the servers, over the rails, within the servers", kOps, build};

}  // namespace lockstep
