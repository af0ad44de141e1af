#include "tests/differential/accuracy_case.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "simulator/collectives/choose.h"
#include "simulator/network/flow/binding_ports.h"
#include "simulator/network/flow/flow_engine.h"
#include "simulator/network/flow/path_finder.h"
#include "simulator/network/packet_engine.h"
#include "topologies/topology_file.h"

namespace lockstep::testing {
namespace {

constexpr std::array<std::pair<CommType, std::string_view>, 11> kAlgorithms = {{
    {CommType::kAllReduce, "ring"},
    {CommType::kAllReduce, "tree"},
    {CommType::kAllReduce, "recursive-halving-doubling"},
    {CommType::kAllGather, "ring"},
    {CommType::kAllGather, "bruck"},
    {CommType::kAllGather, "pat"},
    {CommType::kReduceScatter, "ring"},
    {CommType::kAllToAll, "direct"},
    {CommType::kAllToAll, "pairwise"},
    {CommType::kAllToAll, "hierarchical"},
    {CommType::kBroadcast, "chain"},
}};

std::string draw_topology(Rng& rng) {
  switch (rng.between(0, 7)) {
    case 0:
      return "Spectrum-X:g=8";
    case 1:
      return "Spectrum-X:g=32";
    case 2:
      return "Spectrum-X:g=16,nvbw=1440Gbps";
    case 3:
      return "DCN+:g=32,psn=4,npa=16";
    case 4:
      return "fat-tree:k=4";
    case 5:
      return fmt::format("single-switch:g={},gps=1,nsps=0", rng.between(2, 16));
    default: {
      const std::int64_t per_leaf = 4 << rng.between(0, 1);
      const std::int64_t spines = per_leaf >> rng.between(0, 2);
      return fmt::format("plain:g={},gps=1,nsps=0,npa={},psn={}", per_leaf * rng.between(2, 4),
                         per_leaf, spines);
    }
  }
}

std::vector<NodeId> draw_places(const Topology& topology, Rng& rng) {
  std::vector<NodeId> nodes = topology.gpus();
  if (rng.between(0, 1) == 0) {
    for (std::size_t i = nodes.size() - 1; i > 0; --i) {
      std::swap(nodes[i],
                nodes[static_cast<std::size_t>(rng.between(0, static_cast<std::int64_t>(i)))]);
    }
  }
  if (rng.between(0, 1) == 0) {
    nodes.resize(static_cast<std::size_t>(rng.between(2, std::ssize(nodes))));
  }
  return nodes;
}

/// Whether a link between switches may be offered more than it carries.
bool collides(const AccuracyCase& drawn) {
  const Topology& topology = *drawn.topology;
  FlowOptions flow;
  flow.routes = drawn.routes;
  PathFinder paths(topology, flow);
  std::vector<double> capacity;
  for (std::size_t port = 0; port < 2 * topology.links.size(); ++port) {
    capacity.push_back(paths.capacity(PortId(port)));
  }
  BindingPorts ports(capacity);
  for (const Slot& slot : drawn.collective.schedule->slots) {
    const Path& path = paths.next(
        drawn.collective.nodes[static_cast<std::size_t>(slot.source)],
        drawn.collective.nodes[static_cast<std::size_t>(slot.destination)], slot.channel);
    for (std::size_t hop = 0; hop < path.ports.size(); ++hop) {
      ports.cross(path.ports, hop);
    }
  }
  for (std::size_t port = 0; port < ports.size(); ++port) {
    const Link& link = topology.links[port / 2];
    if (ports.binds(port) && topology.nodes[link.a.index()].kind == NodeKind::kSwitch &&
        topology.nodes[link.b.index()].kind == NodeKind::kSwitch) {
      return true;
    }
  }
  return false;
}

}  // namespace

AccuracyCase draw_case(Rng& rng) {
  AccuracyCase drawn;
  const std::string topology = draw_topology(rng);
  drawn.topology = std::make_shared<const Topology>(topology_from(topology));
  LoneCollective& collective = drawn.collective;
  collective.nodes = draw_places(*drawn.topology, rng);
  drawn.routes.spray = rng.between(0, 1) == 0;
  drawn.seed = static_cast<std::uint64_t>(rng.between(1, 1'000'000));
  collective.send_latency = Time::ns(rng.between(500, 6000));
  CollectiveRequest request;
  std::tie(request.op, drawn.algorithm) =
      kAlgorithms[static_cast<std::size_t>(rng.between(0, std::ssize(kAlgorithms) - 1))];
  request.bytes = Bytes(std::llround(std::exp2(16 + 9 * rng.uniform())));
  collective.bytes = request.bytes;
  collective.schedule = std::make_shared<const Schedule>(
      build_schedule(algorithm_named(drawn.algorithm, request.op), request,
                     shape_of_nodes(*drawn.topology, collective.nodes)));
  drawn.ways = drawn.routes.spray ? AccuracyCase::Ways::kSprayed
               : collides(drawn)  ? AccuracyCase::Ways::kColliding
                                  : AccuracyCase::Ways::kFree;
  drawn.name =
      fmt::format("{}{}, {} by {}, {} ranks, {} B, sends {:.3f} us", topology,
                  drawn.routes.spray ? " sprayed" : "", name_of(request.op), drawn.algorithm,
                  collective.nodes.size(), request.bytes.count(), collective.send_latency.us());
  return drawn;
}

Time time_by_flow(const AccuracyCase& drawn, const PacketOptions* transport) {
  FlowOptions flow;
  flow.routes = drawn.routes;
  if (transport != nullptr) {
    flow.transport = transport_of(*transport, *drawn.topology, flow.payload);
  }
  FlowEngine engine(*drawn.topology, flow);
  return run_lone_collective(drawn.collective, *drawn.topology, engine).end;
}

Time time_by_packets(const AccuracyCase& drawn, PacketOptions packet) {
  const LoneCollective& collective = drawn.collective;
  packet.program = std::string(LOCKSTEP_BINARY) + "-packet";
  packet.routes = drawn.routes;
  packet.lookahead = collective.send_latency;
  for (const Slot& slot : collective.schedule->slots) {
    packet.lookahead = std::min(packet.lookahead,
                                collective.schedule->start_latency(slot, collective.send_latency));
  }
  PacketEngine engine(*drawn.topology, packet);
  return run_lone_collective(collective, *drawn.topology, engine).end;
}

}  // namespace lockstep::testing
