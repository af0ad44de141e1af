#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "topologies/topology.h"

namespace lockstep {
namespace {

std::string name_of(const Topology& topology, NodeId id) {
  constexpr std::array<const char*, 3> kNames{"GPU", "NVSwitch", "switch"};
  const auto kind = static_cast<std::size_t>(topology.nodes[id.index()].kind);
  return fmt::format("{} {}", kNames[kind], id.value);
}

void check_nodes(const Topology& topology) {
  if (topology.gpu_types.empty()) {
    throw Error("the topology names no GPU type");
  }
  if (topology.gpus_per_server < 1) {
    throw Error(fmt::format("the topology has {} GPUs per server", topology.gpus_per_server))
        .expected("at least 1");
  }
  if (topology.count(NodeKind::kGpu) == 0) {
    throw Error("the topology has no GPU");
  }
  for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
    const Node& node = topology.nodes[i];
    if (node.kind != NodeKind::kSwitch && node.server < 0) {
      throw Error(fmt::format("{} belongs to no server", name_of(topology, NodeId(i))))
          .hint("an NVSwitch belongs to the server whose GPUs it is linked to");
    }
    if (node.gpu_type < 0 || static_cast<std::size_t>(node.gpu_type) >= topology.gpu_types.size()) {
      throw Error(
          fmt::format("{} has GPU type number {}", name_of(topology, NodeId(i)), node.gpu_type))
          .expected(fmt::format("a number below {}", topology.gpu_types.size()));
    }
  }
}

void check_links(const Topology& topology) {
  for (const LinkClass& link_class : topology.link_classes) {
    if (link_class.rate.bits_per_second() <= 0 || link_class.delay < Time() ||
        !(link_class.error_rate >= 0 && link_class.error_rate <= 1)) {
      throw Error(fmt::format("a link class has rate {} bit/s, delay {} ps, error rate {}",
                              link_class.rate.bits_per_second(), link_class.delay.count_ps(),
                              link_class.error_rate))
          .expected("a positive rate, no negative delay, an error rate from 0 to 1");
    }
  }
  const auto nodes = static_cast<std::int64_t>(topology.nodes.size());
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    const Link& link = topology.links[i];
    for (const NodeId end : {link.a, link.b}) {
      if (end.value < 0 || end.value >= nodes) {
        throw Error(fmt::format("link {} ends at node {}, which does not exist", i, end.value))
            .expected(fmt::format("a node from 0 to {}", nodes - 1));
      }
    }
    if (link.a == link.b) {
      throw Error(fmt::format("link {} leads from {} to itself", i, name_of(topology, link.a)));
    }
    if (link.link_class < 0 ||
        static_cast<std::size_t>(link.link_class) >= topology.link_classes.size()) {
      throw Error(fmt::format("link {} has link class {}", i, link.link_class))
          .expected(fmt::format("a number below {}", topology.link_classes.size()));
    }
  }
}

/// Whether traffic passes over a link between two switching nodes: NVSwitches forward only inside
/// their server (as Router does).
bool forwards(const Node& a, const Node& b) {
  return a.kind == b.kind &&
         (a.kind == NodeKind::kSwitch || (a.kind == NodeKind::kNvSwitch && a.server == b.server));
}

/// Switching nodes joined by links without crossing a GPU: islands[i] is the island of node i.
std::vector<std::int32_t> switch_islands(const Topology& topology) {
  std::vector<std::int32_t> parent(topology.nodes.size());
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](std::int32_t i) {
    while (parent[static_cast<std::size_t>(i)] != i) {
      std::int32_t& up = parent[static_cast<std::size_t>(i)];
      up = parent[static_cast<std::size_t>(up)];
      i = up;
    }
    return i;
  };
  for (const Link& link : topology.links) {
    if (forwards(topology.nodes[link.a.index()], topology.nodes[link.b.index()])) {
      const std::int32_t a = root(link.a.value);
      const std::int32_t b = root(link.b.value);
      parent[static_cast<std::size_t>(std::max(a, b))] = std::min(a, b);
    }
  }
  for (std::size_t i = 0; i < parent.size(); ++i) {
    parent[i] = root(static_cast<std::int32_t>(i));
  }
  return parent;
}

/// Two GPUs reach each other when they are linked, or both hang on one island. GPUs that hang on
/// the same islands and have no GPU-GPU link share one check.
class Reachability {
 public:
  explicit Reachability(const Topology& topology)
      : topology_(topology),
        adjacency_(topology),
        island_(switch_islands(topology)),
        members_(topology.nodes.size()),
        seen_(topology.nodes.size()),
        gpus_(topology.gpus()) {
    for (const NodeId gpu : gpus_) {
      for (const std::int32_t island : islands_of(gpu)) {
        members_[static_cast<std::size_t>(island)].push_back(gpu);
      }
    }
  }

  void check() {
    for (const std::vector<NodeId>& members : members_) {
      if (members.size() == gpus_.size()) {
        return;
      }
    }
    std::map<std::vector<std::int32_t>, bool> checked;
    for (const NodeId gpu : gpus_) {
      const std::vector<std::int32_t> islands = islands_of(gpu);
      const auto neighbours = adjacency_.of(gpu);
      const bool linked_to_gpu =
          std::any_of(neighbours.begin(), neighbours.end(), [&](const Neighbour& n) {
            return topology_.nodes[n.node.index()].kind == NodeKind::kGpu;
          });
      if (linked_to_gpu || checked.emplace(islands, true).second) {
        check_from(gpu, islands);
      }
    }
  }

 private:
  std::vector<std::int32_t> islands_of(NodeId gpu) const {
    std::vector<std::int32_t> islands;
    for (const Neighbour& n : adjacency_.of(gpu)) {
      const Node& node = topology_.nodes[n.node.index()];
      if (node.kind == NodeKind::kSwitch || (node.kind == NodeKind::kNvSwitch &&
                                             node.server == topology_.nodes[gpu.index()].server)) {
        islands.push_back(island_[n.node.index()]);
      }
    }
    std::sort(islands.begin(), islands.end());
    islands.erase(std::unique(islands.begin(), islands.end()), islands.end());
    return islands;
  }

  void check_from(NodeId gpu, const std::vector<std::int32_t>& islands) {
    ++round_;
    std::size_t reached = 0;
    const auto reach = [&](NodeId node) {
      if (seen_[node.index()] != round_ && topology_.nodes[node.index()].kind == NodeKind::kGpu) {
        seen_[node.index()] = round_;
        ++reached;
      }
    };
    reach(gpu);
    for (const Neighbour& n : adjacency_.of(gpu)) {
      reach(n.node);
    }
    for (const std::int32_t island : islands) {
      for (const NodeId other : members_[static_cast<std::size_t>(island)]) {
        reach(other);
      }
    }
    if (reached == gpus_.size()) {
      return;
    }
    const auto lost = std::find_if(gpus_.begin(), gpus_.end(),
                                   [&](NodeId other) { return seen_[other.index()] != round_; });
    // Of the two, the one that fewer GPUs reach is the one to mend.
    const bool alone = reached * 2 < gpus_.size();
    throw Error(fmt::format("{} cannot be reached from {}", name_of(topology_, alone ? gpu : *lost),
                            name_of(topology_, alone ? *lost : gpu)))
        .expected(
            "a path between every two GPUs over NVSwitches and switches, or a link between them")
        .hint("traffic does not pass through a third GPU; look for a missing link or switch");
  }

  const Topology& topology_;
  Adjacency adjacency_;
  std::vector<std::int32_t> island_;
  std::vector<std::vector<NodeId>> members_;  // by island
  std::vector<std::uint32_t> seen_;
  std::vector<NodeId> gpus_;
  std::uint32_t round_ = 0;
};

}  // namespace

void validate(const Topology& topology) {
  check_nodes(topology);
  check_links(topology);
  Reachability(topology).check();
}

}  // namespace lockstep
