#include "simulator/replay/symmetry_seed.h"

#include <algorithm>
#include <map>

namespace lockstep {

std::vector<std::uint32_t> places_in_fabric(const Topology& topology) {
  const std::size_t count = topology.nodes.size();
  std::int32_t servers = 0;
  for (const Node& node : topology.nodes) {
    servers = std::max(servers, node.server + 1);
  }
  std::vector<std::uint32_t> place(count);
  std::vector<std::uint32_t> next(static_cast<std::size_t>(servers));
  for (std::size_t n = 0; n < count; ++n) {
    if (topology.nodes[n].server >= 0) {
      place[n] = next[static_cast<std::size_t>(topology.nodes[n].server)]++;
    }
  }
  // A server's leaves, as a sum over them: equal sums by chance cost a round of refinement.
  std::vector<std::uint64_t> leaves(static_cast<std::size_t>(servers));
  for (const Link& link : topology.links) {
    for (const auto& [gpu, leaf] : {std::pair(link.a, link.b), std::pair(link.b, link.a)}) {
      const std::int32_t server = topology.nodes[gpu.index()].server;
      if (server >= 0 && topology.nodes[leaf.index()].kind == NodeKind::kSwitch) {
        const auto id = static_cast<std::uint64_t>(leaf.value) + 1;
        leaves[static_cast<std::size_t>(server)] += id * id * 0x9E3779B97F4A7C15U;
      }
    }
  }
  std::map<std::uint64_t, std::uint32_t> on_leaves;
  std::vector<std::uint32_t> server_place;
  for (const std::uint64_t key : leaves) {
    server_place.push_back(on_leaves[key]++);
  }
  for (std::size_t n = 0; n < count; ++n) {
    const std::int32_t server = topology.nodes[n].server;
    if (server >= 0) {
      place[n] += server_place[static_cast<std::size_t>(server)] << 12;
    }
  }
  return place;
}

std::vector<std::uint64_t> symmetry_seed(const Schedule& schedule, const std::vector<NodeId>& nodes,
                                         const std::vector<std::uint32_t>& places) {
  std::vector<std::uint64_t> seed;
  seed.reserve(schedule.slots.size());
  for (const Slot& slot : schedule.slots) {
    const auto at = [&](std::int32_t end) {
      return std::uint64_t{places[nodes[static_cast<std::size_t>(end)].index()]};
    };
    seed.push_back(at(slot.source) << 32 | at(slot.destination));
  }
  return seed;
}

}  // namespace lockstep
