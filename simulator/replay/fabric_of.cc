#include "simulator/replay/fabric_of.h"

#include <algorithm>

namespace lockstep {

NcclFabric fabric_of(const Topology& topology, const std::vector<NodeId>& gpus) {
  const Node& first = topology.nodes[gpus.front().index()];
  NcclFabric fabric;
  fabric.arch = arch_of(topology.gpu_types[static_cast<std::size_t>(first.gpu_type)]);
  fabric.amd_host = fabric.arch == GpuArch::kAmpere;
  std::vector<bool> here(topology.nodes.size(), false);
  for (const NodeId gpu : gpus) {
    here[gpu.index()] = topology.nodes[gpu.index()].server == first.server;
  }
  std::int64_t nvlink = 0;
  std::int32_t nvswitches = 0;
  const auto see = [&](NodeId from, NodeId to, Bandwidth rate) {
    const NodeKind kind = topology.nodes[to.index()].kind;
    if (kind == NodeKind::kSwitch) {
      fabric.nics += here[from.index()] ? 1 : 0;
      fabric.nic = here[from.index()] ? rate : fabric.nic;
    } else if (from == gpus.front() && (kind == NodeKind::kNvSwitch || here[to.index()])) {
      nvlink += rate.bits_per_second();
      fabric.nvswitch = fabric.nvswitch || kind == NodeKind::kNvSwitch;
      nvswitches += kind == NodeKind::kNvSwitch ? 1 : 0;
    }
  };
  for (const Link& link : topology.links) {
    const Bandwidth rate = topology.link_classes[static_cast<std::size_t>(link.link_class)].rate;
    see(link.a, link.b, rate);
    see(link.b, link.a, rate);
  }
  fabric.nvswitches = std::max(1, nvswitches);
  fabric.nvlink = Bandwidth::bits_per_second(nvlink);
  return fabric;
}

std::int32_t nic_ports(const Topology& topology, NodeId gpu) {
  const auto is_nic = [&](NodeId from, NodeId to) {
    return from == gpu && topology.nodes[to.index()].kind == NodeKind::kSwitch;
  };
  return static_cast<std::int32_t>(std::ranges::count_if(topology.links, [&](const Link& link) {
    return is_nic(link.a, link.b) || is_nic(link.b, link.a);
  }));
}

}  // namespace lockstep
