#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "topologies/topology.h"

namespace lockstep {

struct RouteOptions {
  bool spray = false;          ///< split a flow evenly over all shortest paths (packet spraying)
  bool rail_affinity = false;  ///< a GPU with several NIC ports picks by channel, not by hash
  /// Within a server, hash a flow onto one NVSwitch and one of parallel NVLinks (SimAI), instead of
  /// spreading it evenly over all, as GPUs interleave what they send by address.
  bool hash_nvlinks = false;
  /// To another server and another rail, go over NVLink to a local GPU on the destination's rail
  /// first (NCCL's PXN): the one at the destination's place in its server, or else the first. GPUs
  /// of a server that hang on the same leaves are on one rail; rails are numbered in order of their
  /// first GPU.
  bool pxn = false;
  /// Bytes of routing tables above which they are dropped and made anew. 65,536 GPUs need 13 MB on
  /// a leaf-spine fabric, 70 MB on a fat tree; a torus of 8192 routers comes near the default.
  std::size_t table_budget = std::size_t{512} << 20;
};

/// A share of a flow on one port. ECMP paths have share 1 on each hop; sprayed flows less. A
/// double, so that a split terabyte still adds up to the byte.
struct Hop {
  PortId port;
  double share = 1;
};

/// The ports a flow crosses, in path order (sprayed: in order of distance from the source).
struct Route {
  std::vector<Hop> hops;
  bool by_port = false;  ///< whether another source port might take another way
};

/// What tells two flows between the same pair apart, as a UDP 5-tuple does.
struct FlowKey {
  NodeId source, destination;
  std::uint16_t source_port = 10000, destination_port = 100;
  std::int32_t channel = 0;  ///< for rail_affinity
};

/// Finds routes. The first of these that exists is taken:
///   1. a direct link between the two nodes (full mesh);
///   2. within a server, the shortest path over its NVSwitches;
///   3. the shortest path over switches.
/// GPUs forward nothing, except as PXN relays; NVSwitches forward nothing between servers.
///
/// Equal next hops are told apart by ECMP: MurmurHash3_x86_32 of three little-endian words (source
/// address, destination address, source_port | destination_port << 16), modulo the number of next
/// hops in ascending node id (parallel links in link order). The seed is the node id at a switch
/// or NVSwitch and kHostHashSeed where the flow starts; the address of node i
/// is 11.(i/256).(i%256).1. This is SimAI's rule (docs/models.md). Behind a PXN relay the source
/// address is the relay's. With rail_affinity a GPU takes port number (s + channel mod q) mod P of
/// its P nearest ones instead, q the odd part of the number of its server's GPUs, G, and s the sum
/// of the digits of channel div q to the base P. A GPU has channels at equal distances: of a ring
/// those G apart, or G/2, G/4, … where a group has fewer ranks of its server. With P a power of two
/// all of these take the ports in even parts.
///
/// NVLinks are not ECMP's, but with hash_nvlinks: what goes over them is spread evenly over all
/// shortest ways, sprayed or not, direct links and the way to a PXN relay too.
///
/// A route takes about a microsecond and, once the tables are warm, allocates nothing. Tables: see
/// ForwardingPlane; memory is bounded, never GPUs squared. The topology must be valid and
/// outlive the router. Not for two threads at once; routers are independent of each other.
class Router {
 public:
  explicit Router(const Topology& topology, RouteOptions options = {});
  ~Router();
  Router(Router&&) noexcept;
  Router& operator=(Router&&) noexcept;

  /// Overwrites `route`. PRECONDITION: source != destination; each a GPU, a switch, or an NVSwitch
  /// of the other's server. ERRORS: Error naming both nodes when there is no path.
  void route(const FlowKey& key, Route& route);
  /// Where a sprayed route enters and leaves the fabric, of GPUs on different servers that hang on
  /// it by one port each: the route is `up`, the ports between the two switches, which are the same
  /// for all GPUs there, and `down`. Nothing for other routes.
  struct FabricEnds {
    PortId up, down;
    std::int32_t from = -1, to = -1;  ///< numbers of the switches
  };
  std::optional<FabricEnds> fabric_ends(NodeId source, NodeId destination) const;
  const Topology& topology() const;
  /// Bytes in the tables made so far.
  std::size_t table_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
