#include "simulator/replay/switch_node.h"

#include <vector>

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep {

NodeId switch_node(const Topology& topology, const Adjacency& adjacency, NodeId gpu,
                   const SwitchPlace& place) {
  NodeId here = gpu;
  for (std::int32_t level = place.level == 0 ? 0 : 1; level <= place.level; ++level) {
    std::vector<NodeId> found;
    for (const Neighbour& other : adjacency.of(here)) {  // in ascending id
      const Node& node = topology.nodes[other.node.index()];
      if (level == 0 ? node.kind == NodeKind::kNvSwitch
                     : node.kind == NodeKind::kSwitch && node.tier == level) {
        found.push_back(other.node);
      }
    }
    if (found.empty()) {
      throw Error(fmt::format("GPU {} reaches no {} that could reduce", gpu.value,
                              level == 0 ? std::string("NVSwitch")
                                         : fmt::format("switch of tier {}", level)))
          .hint("take an algorithm that needs no reduction in switches, such as ring or tree");
    }
    const std::size_t wanted = level == place.level ? static_cast<std::size_t>(place.index) : 0;
    here = found[wanted % found.size()];
  }
  return here;
}

}  // namespace lockstep
