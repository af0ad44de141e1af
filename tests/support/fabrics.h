#pragma once

#include <cstdint>
#include <vector>

#include "topologies/topology.h"

namespace lockstep::testing {

/// Builds small topologies by hand. Every link has 400 Gbps and 500 ns.
class FabricMaker {
 public:
  FabricMaker();
  NodeId gpu(std::int32_t server);
  NodeId nvswitch(std::int32_t server);
  NodeId leaf();
  NodeId spine();
  LinkId link(NodeId a, NodeId b);
  /// `servers` servers of `per_server` GPUs on one NVSwitch each: GPUs first, then NVSwitches.
  void servers(std::int32_t servers, std::int32_t per_server);
  Topology topology;

 private:
  NodeId add(NodeKind kind, std::int32_t server, std::uint8_t tier);
};

/// GPUs 0 … G-1, NVSwitches, then leaves, then spines. GPU i of a segment hangs on leaf (i mod
/// per_server) of that segment; every leaf on every spine. This is the wiring of Spectrum-X.
Topology rail_optimised(std::int32_t servers, std::int32_t per_server, std::int32_t spines,
                        std::int32_t servers_per_segment);

/// One segment of rails in two planes: leaves of plane A, of plane B, then spines of A, of B.
Topology dual_plane(std::int32_t servers, std::int32_t per_server, std::int32_t spines_per_plane);

/// The k-ary fat tree (Al-Fares et al., SIGCOMM 2008) with single-GPU servers: hosts, then edge,
/// aggregation and core switches, pod by pod.
Topology fat_tree(std::int32_t k);

/// The nodes along an unsprayed route, source first.
std::vector<std::int32_t> nodes_along(const Topology& topology, const std::vector<PortId>& ports);

NodeId source_of(const Topology& topology, PortId port);
NodeId destination_of(const Topology& topology, PortId port);

}  // namespace lockstep::testing
