#include "planner/job/group_shapes.h"

#include <algorithm>

namespace lockstep {

GroupShapes::GroupShapes(const Topology& topology, const std::vector<NodeId>& gpus)
    : fabrics_(topology) {
  std::vector<std::int32_t> rank_of(topology.nodes.size(), -1);
  for (std::size_t rank = 0; rank < gpus.size(); ++rank) {
    rank_of[gpus[rank].index()] = static_cast<std::int32_t>(rank);
    server_.push_back(topology.nodes[gpus[rank].index()].server);
  }
  nvlink_.resize(gpus.size());
  nic_.resize(gpus.size());
  const auto see = [&](NodeId from, NodeId to, Bandwidth rate) {
    const std::int32_t rank = rank_of[from.index()];
    if (rank >= 0) {
      const bool network = topology.nodes[to.index()].kind == NodeKind::kSwitch;
      (network ? nic_ : nvlink_)[static_cast<std::size_t>(rank)] += rate.bytes_per_second();
    }
  };
  for (const Link& link : topology.links) {
    const Bandwidth rate = topology.link_classes[static_cast<std::size_t>(link.link_class)].rate;
    see(link.a, link.b, rate);
    see(link.b, link.a, rate);
  }
}

const std::vector<PlacedShape>& GroupShapes::of(const RankLayout& layout, RankGroup kind,
                                                std::int64_t replicas) {
  const auto [found, is_new] =
      known_.try_emplace(Key({layout.gpus, layout.tp, layout.cp, layout.pp, layout.ep, layout.etp},
                             layout.order, kind, replicas));
  if (is_new) {
    found->second = of(groups_of(layout, kind), replicas);
  }
  return found->second;
}

std::vector<PlacedShape> GroupShapes::of(std::span<const std::vector<std::int32_t>> groups,
                                         std::int64_t replicas) const {
  std::vector<PlacedShape> shapes;
  std::map<GroupShape, std::size_t> place;
  std::vector<std::int32_t> servers;
  for (const std::vector<std::int32_t>& whole : groups) {
    const std::size_t size = whole.size() / static_cast<std::size_t>(replicas);
    for (std::size_t begin = 0; size > 1 && begin < whole.size(); begin += size) {
      const std::span<const std::int32_t> group = std::span(whole).subspan(begin, size);
      servers.clear();
      for (const std::int32_t rank : group) {
        servers.push_back(server_[static_cast<std::size_t>(rank)]);
      }
      GroupShape shape = fabrics_.shape_of(servers);
      const auto [at, first] = place.try_emplace(std::move(shape), shapes.size());
      if (first) {
        PlacedShape placed;
        placed.shape = at->first;
        for (std::size_t i = 0; i < size; ++i) {
          placed.servers = std::max(placed.servers, placed.shape.server[i] + 1);
          placed.local_pair = placed.local_pair || servers[i] == servers[(i + 1) % size];
          const std::array pair{servers[i], servers[(i + 1) % size]};
          const NcclFabric fabric = fabrics_.shape_of(pair).fabric;
          if (std::ranges::find(placed.pairs, fabric) == placed.pairs.end()) {
            placed.pairs.push_back(fabric);
          }
        }
        shapes.push_back(std::move(placed));
      }
      PlacedShape& placed = shapes[at->second];
      std::vector<double> nics(static_cast<std::size_t>(placed.servers));
      std::vector<std::int32_t> ranks(nics.size());
      for (std::size_t i = 0; i < size; ++i) {
        const auto rank = static_cast<std::size_t>(group[i]);
        const auto server = static_cast<std::size_t>(placed.shape.server[i]);
        nics[server] += nic_[rank];
        placed.most = std::max(placed.most, ++ranks[server]);
        placed.nvlink_Bps = std::max(placed.nvlink_Bps, nvlink_[rank]);
        placed.nic_Bps = std::max(placed.nic_Bps, nic_[rank]);
      }
      placed.server_nic_Bps = std::max(placed.server_nic_Bps, std::ranges::max(nics));
    }
  }
  return shapes;
}

}  // namespace lockstep
