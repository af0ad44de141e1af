#include "simulator/collectives/building.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "simulator/collectives/rings.h"

namespace lockstep {

Schedule build_schedule(const CollectiveAlgorithm& algorithm, const CollectiveRequest& request,
                        const GroupShape& shape) {
  return mark_schedule(algorithm.build(request, shape), request, shape);
}

Schedule mark_schedule(Schedule schedule, const CollectiveRequest& request,
                       const GroupShape& shape) {
  schedule.protocol = request.protocol;
  schedule.hop_latency = request.hop_latency;
  if (request.hop_latency) {
    schedule.server = shape.server;
  }
  return schedule;
}

Schedule empty_schedule(const CollectiveRequest& request, const GroupShape& shape) {
  Schedule schedule;
  schedule.op = request.op;
  schedule.ranks = shape.ranks;
  schedule.root = request.root;
  return schedule;
}

std::vector<std::vector<std::int32_t>> ranks_by_server(const GroupShape& shape) {
  std::vector<std::vector<std::int32_t>> servers;
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank) {
    const auto server = static_cast<std::size_t>(shape.server[static_cast<std::size_t>(rank)]);
    if (server == servers.size()) {
      servers.emplace_back();
    }
    servers[server].push_back(rank);
  }
  return servers;
}

std::int32_t fewest_a_server(const GroupShape& shape) {
  std::vector<std::int32_t> count(shape.server.size());
  for (const std::int32_t server : shape.server) {
    ++count[static_cast<std::size_t>(server)];
  }
  std::int32_t fewest = shape.ranks;
  for (const std::int32_t c : count) {
    fewest = c == 0 ? fewest : std::min(fewest, c);
  }
  return fewest;
}

std::int32_t piece_count(Bytes bytes, Bytes limit) {
  const std::int64_t whole = bytes.count() / limit.count();
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(
      whole + (bytes.count() % limit.count() > 0 ? 1 : 0), 1, kMostPieces));
}

void set_shards(Schedule& schedule, const CollectiveRequest& request) {
  const std::int32_t n = schedule.ranks;
  constexpr std::int32_t kMostPairs = 46'340;  // whose square is a number of 32 bits
  if (request.op == CommType::kAllToAll && n > kMostPairs) {
    throw Error("an all-to-all of " + std::to_string(n) + " ranks has too many pairs")
        .expected("at most " + std::to_string(kMostPairs) + " ranks");
  }
  schedule.chunks = request.op == CommType::kAllToAll ? n * n : n;
  schedule.chunk_bytes = part_size(request.bytes, n, request.flavour);
  if (!request.sizes.empty()) {
    if (request.sizes.size() != static_cast<std::size_t>(schedule.chunks)) {
      throw Error(std::to_string(request.sizes.size()) + " sizes are given for " +
                  std::string(name_of(request.op)) + " on " + std::to_string(n) + " ranks")
          .expected(std::to_string(schedule.chunks));
    }
    schedule.chunk_sizes = request.sizes;
  }
}

void require_even(const CollectiveRequest& request, std::string_view algorithm) {
  if (!request.sizes.empty()) {
    throw Error("algorithm '" + std::string(algorithm) + "' cannot give ranks different sizes")
        .hint(
            "direct, pairwise, bruck and hierarchical can in an all-to-all, ring and bruck in an "
            "all-gather, ring in a reduce-scatter");
  }
}

Rounds::Rounds(Schedule& schedule, bool rendezvous)
    : schedule_(schedule),
      rendezvous_(rendezvous),
      before_(static_cast<std::size_t>(schedule.places())) {}

void Rounds::send(std::int32_t from, std::int32_t to, std::int32_t start, std::int32_t run,
                  bool reduce, std::int32_t cycle) {
  Slot slot;
  slot.source = from;
  slot.destination = to;
  slot.reduces = reduce ? 1 : 0;
  slot.start = start;
  slot.run = run;
  slot.cycle = cycle;
  std::vector<SlotWait> waits_for(waits(from).begin(), waits(from).end());
  if (rendezvous_) {
    waits_for.insert(waits_for.end(), waits(to).begin(), waits(to).end());
  }
  now_.emplace_back(to, schedule_.add(slot, waits_for));
}

void Rounds::send(std::int32_t from, std::int32_t to, std::span<const std::int32_t> chunks,
                  bool reduce) {
  if (!chunks.empty()) {
    send(from, to, 0, static_cast<std::int32_t>(chunks.size()), reduce,
         schedule_.add_cycle(chunks));
  }
}

void Rounds::next_round() {
  const auto source_of = [&](std::int32_t slot) {
    return schedule_.slots[static_cast<std::size_t>(slot)].source;
  };
  // What waited for all that both its ends had done before stands for that.
  for (std::size_t i = 0; rendezvous_ && i < now_.size(); ++i) {
    before_[static_cast<std::size_t>(now_[i].first)].clear();
    before_[static_cast<std::size_t>(source_of(now_[i].second))].clear();
  }
  for (const auto& [place, slot] : now_) {
    arrived(place, slot);
    if (rendezvous_) {
      arrived(source_of(slot), slot);
    }
  }
  now_.clear();
}

void Rounds::arrived(std::int32_t place, std::int32_t slot) {
  before_[static_cast<std::size_t>(place)].push_back({slot, SlotWait::kAll});
}

void Rounds::keep_last(std::int32_t place, std::size_t count) {
  std::vector<SlotWait>& before = before_[static_cast<std::size_t>(place)];
  if (before.size() > count) {
    before.erase(before.begin(), before.end() - static_cast<std::ptrdiff_t>(count));
  }
}

}  // namespace lockstep
