#include <algorithm>
#include <numeric>

#include "simulator/collectives/building.h"
#include "simulator/collectives/nvswitch.h"
#include "simulator/collectives/rails.h"
#include "simulator/collectives/rings.h"
#include "simulator/collectives/trees.h"

namespace lockstep {
namespace {

constexpr CommType kOps[] = {CommType::kAllReduce};

/// NCCL's CollNetChain: for each rail a chain in every server, ended by the rail's head, and the
/// rail's switch that adds what the heads send it. That is a tree whose root is the switch, with
/// the chains for branches; a lone server's root is its head.
Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  Schedule schedule = empty_schedule(request, shape);
  if (request.bytes == Bytes(0)) {
    return schedule;
  }
  const Rails rails(shape);
  Slot slot;
  slot.count = piece_count(part_size(request.bytes, rails.count, CollectiveFlavour::kDefault),
                           piece_limit(request.protocol));
  slot.step = rails.count;
  schedule.chunks = rails.count * slot.count;
  schedule.chunk_bytes = part_size(request.bytes, schedule.chunks, request.flavour);
  schedule.reserve(2.0 * rails.count * shape.ranks);
  const bool in_switch = rails.size() > 1;
  for (std::int32_t rail = 0; rail < rails.count; ++rail) {
    std::vector<std::int32_t> places(static_cast<std::size_t>(shape.ranks));
    std::iota(places.begin(), places.end(), 0);
    std::vector<std::int32_t> parents(places.size(), -1);
    if (in_switch) {
      places.push_back(add_switch(schedule, rails.head(0, rail), 1));
      parents.push_back(-1);
    }
    for (const auto& ranks : rails.servers) {
      std::vector<std::int32_t> chain = ranks;
      std::rotate(chain.begin(), chain.begin() + rail, chain.end());
      parents[static_cast<std::size_t>(chain[0])] = in_switch ? shape.ranks : -1;
      for (std::size_t i = 1; i < chain.size(); ++i) {
        parents[static_cast<std::size_t>(chain[i])] = chain[i - 1];
      }
    }
    slot.channel = rail;
    slot.start = rail;
    add_tree(schedule, parents, places, slot, true, true, {});
  }
  return schedule;
}

}  // namespace

extern const CollectiveAlgorithm kCollnetChainCollectiveAlgorithm = {
    "collnet-chain", "chains in the servers, leaf switches between them", kOps, build};

}  // namespace lockstep
