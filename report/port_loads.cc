#include "report/port_loads.h"

#include <algorithm>
#include <string_view>

namespace lockstep {

std::vector<PortLoad> busiest_ports(const StepResult& result) {
  std::vector<PortLoad> loads;
  const Time whole = std::max(result.total, result.last_rank_end);  // flavour simai's is rank 0's
  for (std::size_t i = 0; i < result.ports.size(); ++i) {
    const PortUse& use = result.ports[i];
    if (use.bytes > Bytes(0)) {
      loads.push_back({PortId(i), use.bytes, use.busy, whole > Time() ? use.busy / whole : 0});
    }
  }
  std::stable_sort(loads.begin(), loads.end(),
                   [](const PortLoad& a, const PortLoad& b) { return a.busy > b.busy; });
  return loads;
}

std::string node_name(const Topology& topology, NodeId node) {
  const auto kind = [&]() -> std::string_view {
    const Node& it = topology.nodes[node.index()];
    if (it.kind != NodeKind::kSwitch) {
      return it.kind == NodeKind::kGpu ? "gpu" : "nvswitch";
    }
    switch (it.tier) {
      case 1:
        return "leaf";
      case 2:
        return "spine";
      case 3:
        return "core";
      default:
        return "switch";
    }
  };
  return std::string(kind()) + ' ' + std::to_string(node.value);
}

PortEnds ends_of(const Topology& topology, PortId port) {
  const Link& link = topology.links[port.index() / 2];
  return port.index() % 2 == 0 ? PortEnds{link.a, link.b} : PortEnds{link.b, link.a};
}

}  // namespace lockstep
