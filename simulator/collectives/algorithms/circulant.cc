#include <bit>
#include <vector>

#include "simulator/collectives/building.h"
#include "simulator/collectives/rails.h"
#include "simulator/collectives/rings.h"

namespace lockstep {
namespace {

constexpr CommType kOps[] = {CommType::kAllReduce};

/// Distances ceil(n / 2), ceil(n / 4), … 1.
std::vector<std::int32_t> halving(std::int32_t n) {
  std::vector<std::int32_t> distances;
  while (n > 1) {
    distances.push_back(n = (n + 1) / 2);
  }
  return distances;
}

/// Träff: Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms, arXiv:2410.14234, 2024,
/// over the servers of each rail (rails.h): ceil(log2 n) rounds to reduce and scatter and as many
/// to gather, for any number n of servers, in which all do the same. At a distance of d servers,
/// the one before it having been d', each sends what it has of the parts of those d, … d' - 1
/// further on to the server d further on, which adds it; to gather, backwards. Of 2^k servers the
/// one with the other bit d takes the place of the one d further on, which is recursive halving and
/// doubling (Rabenseifner 2004): as many rounds, and servers of one segment keep together. Within
/// servers everyone exchanges with everyone at once, before and after.
Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  require_even(request, "circulant");
  Schedule schedule = empty_schedule(request, shape);
  if (request.bytes == Bytes(0)) {
    return schedule;
  }
  const Rails rails(shape);
  const std::int32_t servers = rails.size();
  schedule.chunks = rails.count * servers;
  schedule.chunk_bytes = part_size(request.bytes, schedule.chunks, request.flavour);
  Rounds rounds(schedule);
  for (const auto& ranks : rails.servers) {
    rails.each_to_each(ranks, [&](std::int32_t from, std::int32_t to, std::int32_t rail) {
      rounds.send(from, to, rail * servers, servers, true);
    });
  }
  rounds.next_round();
  const std::vector<std::int32_t> distances = halving(servers);
  const bool by_bits = std::has_single_bit(static_cast<std::uint32_t>(servers));
  std::vector<std::int32_t> chunks;
  const auto exchange = [&](std::int32_t distance, std::int32_t before, bool reduce) {
    for (std::int32_t rail = 0; rail < rails.count; ++rail) {
      for (std::int32_t server = 0; server < servers; ++server) {
        const std::int32_t further = by_bits ? server ^ distance : (server + distance) % servers;
        const std::int32_t first = by_bits ? further & ~(distance - 1) : further;
        chunks.clear();
        for (std::int32_t i = 0; i < before - distance; ++i) {
          chunks.push_back(rail * servers + (first + i) % servers);
        }
        const std::int32_t here = rails.head(server, rail), there = rails.head(further, rail);
        rounds.send(reduce ? here : there, reduce ? there : here, chunks, reduce);
      }
    }
    rounds.next_round();
  };
  for (std::size_t i = 0; i < distances.size(); ++i) {
    exchange(distances[i], i == 0 ? servers : distances[i - 1], true);
  }
  for (std::size_t i = distances.size(); i-- > 0;) {
    exchange(distances[i], i == 0 ? servers : distances[i - 1], false);
    if (i + 1 == distances.size()) {
      // It came from where the last part to reduce went, once all but the last arrival were there.
      for (std::int32_t server = 0; server < servers; ++server) {
        for (std::int32_t rail = 0; rail < rails.count; ++rail) {
          rounds.keep_last(rails.head(server, rail), 2);
        }
      }
    }
  }
  for (const auto& ranks : rails.servers) {
    rails.each_to_each(ranks, [&](std::int32_t to, std::int32_t from, std::int32_t rail) {
      rounds.send(from, to, rail * servers, servers, false);
    });
  }
  return schedule;
}

}  // namespace

extern const CollectiveAlgorithm kCirculantCollectiveAlgorithm = {
    "circulant", "within the servers, over the rails in 2 ceil(log2 n) rounds, within the servers",
    kOps, build};

}  // namespace lockstep
