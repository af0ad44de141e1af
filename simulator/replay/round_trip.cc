#include "simulator/replay/round_trip.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace lockstep {
namespace {

Time hop(const LinkClass& kind, Bytes wire) {
  return kind.delay + kind.delay + transfer_time(wire, kind.rate);
}

/// From the farthest GPU, by hops, to `from` and back, not over `without`. GPUs pass nothing on.
Time farthest(const Topology& topology, const Adjacency& adjacency, NodeId from, NodeId without,
              Bytes wire) {
  std::vector<std::optional<Time>> reached(topology.nodes.size());
  reached[from.index()] = Time();
  reached[without.index()] = Time();
  std::vector<NodeId> order = {from};
  Time longest;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const NodeId node = order[i];
    const Time so_far = *reached[node.index()];
    if (topology.nodes[node.index()].kind == NodeKind::kGpu) {
      longest = std::max(longest, so_far);
      continue;
    }
    for (const Neighbour& next : adjacency.of(node)) {
      std::optional<Time>& there = reached[next.node.index()];
      if (!there) {
        there = so_far + hop(topology.class_of(LinkId(next.port.index() / 2)), wire);
        order.push_back(next.node);
      }
    }
  }
  return longest;
}

}  // namespace

Time longest_round_trip(const Topology& topology, LinkId link, Bytes wire) {
  const Adjacency adjacency(topology);
  const Link& ends = topology.links[link.index()];
  return hop(topology.class_of(link), wire) + farthest(topology, adjacency, ends.a, ends.b, wire) +
         farthest(topology, adjacency, ends.b, ends.a, wire);
}

}  // namespace lockstep
