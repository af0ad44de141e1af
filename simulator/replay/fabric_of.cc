#include "simulator/replay/fabric_of.h"

#include <algorithm>
#include <optional>
#include <string>

namespace lockstep {
namespace {

/// The NVLinks of one GPU.
struct NvLinks {
  std::int64_t bits_per_second = 0;
  std::int32_t nvswitches = 0;
};

std::map<std::int32_t, NcclFabric> by_server(const Topology& topology,
                                             const std::vector<NodeId>& gpus) {
  std::vector<bool> given(topology.nodes.size(), false);
  for (const NodeId gpu : gpus) {
    given[gpu.index()] = true;
  }
  std::map<std::int32_t, NcclFabric> servers;
  std::vector<NvLinks> found(topology.nodes.size());
  const auto see = [&](NodeId from, NodeId to, Bandwidth rate) {
    if (!given[from.index()]) {
      return;
    }
    const Node& gpu = topology.nodes[from.index()];
    const Node& other = topology.nodes[to.index()];
    if (other.kind == NodeKind::kSwitch) {
      NcclFabric& fabric = servers[gpu.server];
      fabric.nic = fabric.nics == 0 ? rate : std::min(fabric.nic, rate);
      ++fabric.nics;
    } else if (other.kind == NodeKind::kNvSwitch ||
               (given[to.index()] && other.server == gpu.server)) {
      found[from.index()].bits_per_second += rate.bits_per_second();
      found[from.index()].nvswitches += other.kind == NodeKind::kNvSwitch ? 1 : 0;
    }
  };
  for (const Link& link : topology.links) {
    const Bandwidth rate = topology.link_classes[static_cast<std::size_t>(link.link_class)].rate;
    see(link.a, link.b, rate);
    see(link.b, link.a, rate);
  }
  std::map<std::int32_t, NvLinks> least;  // of a server's GPUs
  for (const NodeId id : gpus) {
    const Node& node = topology.nodes[id.index()];
    const auto type = static_cast<std::size_t>(node.gpu_type);
    const std::string name =  // a topology that is made up in a program may name no types
        type < topology.gpu_types.size() ? topology.gpu_types[type] : std::string();
    const GpuArch arch = arch_of(name);
    const auto [known, first] = least.try_emplace(node.server, found[id.index()]);
    NvLinks& links = known->second;
    links.bits_per_second = std::min(links.bits_per_second, found[id.index()].bits_per_second);
    links.nvswitches = std::min(links.nvswitches, found[id.index()].nvswitches);
    NcclFabric& fabric = servers[node.server];
    fabric.arch = first ? arch : std::min(fabric.arch, arch);
    fabric.grace_host = is_beside_grace(name) && (first || fabric.grace_host);
  }
  for (auto& [server, fabric] : servers) {
    const NvLinks& links = least.at(server);
    fabric.amd_host = fabric.arch == GpuArch::kAmpere;
    fabric.nvlink = Bandwidth::bits_per_second(links.bits_per_second);
    fabric.nvswitch = links.nvswitches > 0;
    fabric.nvswitches = std::max(1, links.nvswitches);
    fabric.mesh = fabric.nvlink > Bandwidth() && !fabric.nvswitch;
  }
  return servers;
}

/// The least of what ranks in these servers, each with so many of them, see.
NcclFabric least_of(const std::map<std::int32_t, NcclFabric>& of,
                    const std::map<std::int32_t, std::int32_t>& ranks) {
  std::optional<NcclFabric> least, joined;  // of all servers, of those with several of the ranks
  const auto add = [](std::optional<NcclFabric>& all, const NcclFabric& one) {
    if (!all) {
      all = one;
      return;
    }
    all->arch = std::min(all->arch, one.arch);
    all->amd_host = all->amd_host || one.amd_host;
    all->grace_host = all->grace_host && one.grace_host;
    all->nic = std::min(all->nic, one.nic);
    all->nics = std::min(all->nics, one.nics);
    all->nvlink = std::min(all->nvlink, one.nvlink);
    all->nvswitch = all->nvswitch && one.nvswitch;
    all->nvswitches = std::min(all->nvswitches, one.nvswitches);
  };
  for (const auto& [server, count] : ranks) {
    const NcclFabric& fabric = of.at(server);
    add(least, fabric);
    if (count > 1) {
      add(joined, fabric);
    }
  }
  if (joined) {
    least->nvlink = joined->nvlink;
    least->nvswitch = joined->nvswitch;
    least->nvswitches = joined->nvswitches;
  }
  least->mesh = least->nvlink > Bandwidth() && !least->nvswitch;
  return *least;
}

}  // namespace

NcclFabric fabric_of(const Topology& topology, const std::vector<NodeId>& gpus) {
  std::map<std::int32_t, std::int32_t> ranks;
  for (const NodeId gpu : gpus) {
    ++ranks[topology.nodes[gpu.index()].server];
  }
  return least_of(by_server(topology, gpus), ranks);
}

ServerFabrics::ServerFabrics(const Topology& topology) : of_(by_server(topology, topology.gpus())) {
  alike_ = std::ranges::all_of(
      of_, [&](const auto& server) { return server.second == of_.begin()->second; });
}

GroupShape ServerFabrics::shape_of(std::span<const std::int32_t> servers) const {
  GroupShape shape = group_shape(servers);
  if (alike_) {
    shape.fabric = of_.empty() ? NcclFabric() : of_.begin()->second;
    return shape;
  }
  std::map<std::int32_t, std::int32_t> ranks;
  for (const std::int32_t server : servers) {
    ++ranks[server];
  }
  shape.fabric = least_of(of_, ranks);
  return shape;
}

std::vector<NodeId> gpus_of_first_server(const Topology& topology) {
  std::vector<NodeId> gpus = topology.gpus();
  const auto server_of = [&](NodeId gpu) { return topology.nodes[gpu.index()].server; };
  std::erase_if(gpus, [&, first = gpus.empty() ? -1 : server_of(gpus.front())](NodeId gpu) {
    return server_of(gpu) != first;
  });
  return gpus;
}

std::int32_t nic_ports(const Topology& topology, const std::vector<NodeId>& gpus) {
  std::vector<std::int32_t> ports(topology.nodes.size());
  const auto see = [&](NodeId from, NodeId to) {
    ports[from.index()] += topology.nodes[to.index()].kind == NodeKind::kSwitch ? 1 : 0;
  };
  for (const Link& link : topology.links) {
    see(link.a, link.b);
    see(link.b, link.a);
  }
  const auto of = [&](NodeId gpu) { return ports[gpu.index()]; };
  return gpus.empty() ? 0 : of(*std::ranges::min_element(gpus, {}, of));
}

}  // namespace lockstep
