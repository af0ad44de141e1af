#include "tests/support/fabrics.h"

namespace lockstep::testing {

FabricMaker::FabricMaker() {
  topology.name = "handmade";
  topology.gpu_types = {"H100"};
  topology.link_classes = {{Bandwidth::gbps(400), Time::ns(500), 0, "400Gbps", "0.0005ms", "0"}};
}

NodeId FabricMaker::add(NodeKind kind, std::int32_t server, std::uint8_t tier) {
  Node node;
  node.kind = kind;
  node.server = server;
  node.tier = tier;
  topology.nodes.push_back(node);
  return NodeId(topology.nodes.size() - 1);
}

NodeId FabricMaker::gpu(std::int32_t server) { return add(NodeKind::kGpu, server, 0); }
NodeId FabricMaker::nvswitch(std::int32_t server) { return add(NodeKind::kNvSwitch, server, 0); }
NodeId FabricMaker::leaf() { return add(NodeKind::kSwitch, -1, 1); }
NodeId FabricMaker::spine() { return add(NodeKind::kSwitch, -1, 2); }

LinkId FabricMaker::link(NodeId a, NodeId b) {
  topology.links.push_back({a, b, 0});
  return LinkId(topology.links.size() - 1);
}

void FabricMaker::servers(std::int32_t servers, std::int32_t per_server) {
  topology.gpus_per_server = per_server;
  for (std::int32_t i = 0; i < servers * per_server; ++i) {
    gpu(i / per_server);
  }
  for (std::int32_t s = 0; s < servers; ++s) {
    const NodeId nvs = nvswitch(s);
    for (std::int32_t i = 0; i < per_server; ++i) {
      link(NodeId(s * per_server + i), nvs);
    }
  }
}

Topology rail_optimised(std::int32_t servers, std::int32_t per_server, std::int32_t spines,
                        std::int32_t servers_per_segment) {
  FabricMaker maker;
  maker.servers(servers, per_server);
  const std::int32_t segments = (servers + servers_per_segment - 1) / servers_per_segment;
  std::vector<NodeId> leaves;
  for (std::int32_t i = 0; i < segments * per_server; ++i) {
    leaves.push_back(maker.leaf());
  }
  for (std::int32_t i = 0; i < servers * per_server; ++i) {
    const std::int32_t segment = i / per_server / servers_per_segment;
    maker.link(NodeId(i), leaves[static_cast<std::size_t>(segment * per_server + i % per_server)]);
  }
  for (std::int32_t i = 0; i < spines; ++i) {
    const NodeId spine = maker.spine();
    for (const NodeId leaf : leaves) {
      maker.link(leaf, spine);
    }
  }
  return maker.topology;
}

Topology dual_plane(std::int32_t servers, std::int32_t per_server, std::int32_t spines_per_plane) {
  FabricMaker maker;
  maker.servers(servers, per_server);
  std::vector<NodeId> leaves, spines;
  for (std::int32_t i = 0; i < 2 * per_server; ++i) {
    leaves.push_back(maker.leaf());
  }
  for (std::int32_t i = 0; i < 2 * spines_per_plane; ++i) {
    spines.push_back(maker.spine());
  }
  for (std::int32_t i = 0; i < servers * per_server; ++i) {
    maker.link(NodeId(i), leaves[static_cast<std::size_t>(i % per_server)]);
    maker.link(NodeId(i), leaves[static_cast<std::size_t>(per_server + i % per_server)]);
  }
  for (std::int32_t i = 0; i < 2 * per_server; ++i) {
    for (std::int32_t j = 0; j < spines_per_plane; ++j) {
      const std::int32_t plane = i / per_server;
      maker.link(leaves[static_cast<std::size_t>(i)],
                 spines[static_cast<std::size_t>(plane * spines_per_plane + j)]);
    }
  }
  return maker.topology;
}

Topology fat_tree(std::int32_t k) {
  FabricMaker maker;
  maker.topology.gpus_per_server = 1;
  const std::int32_t half = k / 2;
  const std::int32_t hosts = k * half * half, edges = k * half;
  for (std::int32_t i = 0; i < hosts; ++i) {
    maker.gpu(i);
  }
  for (std::int32_t i = 0; i < 2 * edges + half * half; ++i) {
    i < edges ? maker.leaf() : maker.spine();
  }
  for (std::int32_t i = 0; i < hosts; ++i) {
    maker.link(NodeId(i), NodeId(hosts + i / half));
  }
  for (std::int32_t pod = 0; pod < k; ++pod) {
    for (std::int32_t i = 0; i < half; ++i) {
      const NodeId aggregation(hosts + edges + pod * half + i);
      for (std::int32_t j = 0; j < half; ++j) {
        maker.link(NodeId(hosts + pod * half + j), aggregation);
        maker.link(aggregation, NodeId(hosts + 2 * edges + i * half + j));
      }
    }
  }
  return maker.topology;
}

NodeId source_of(const Topology& topology, PortId port) {
  const Link& link = topology.links[port.index() / 2];
  return port.value % 2 == 0 ? link.a : link.b;
}

NodeId destination_of(const Topology& topology, PortId port) {
  return source_of(topology, PortId(port.value ^ 1));
}

std::vector<std::int32_t> nodes_along(const Topology& topology, const std::vector<PortId>& ports) {
  std::vector<std::int32_t> nodes;
  for (const PortId port : ports) {
    const std::int32_t from = source_of(topology, port).value;
    if (nodes.empty()) {
      nodes.push_back(from);
    } else if (nodes.back() != from) {
      nodes.push_back(-1);  // the chain is broken: no expectation will match
    }
    nodes.push_back(destination_of(topology, port).value);
  }
  return nodes;
}

}  // namespace lockstep::testing
