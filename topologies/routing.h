#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "topologies/topology.h"

namespace lockstep {

struct RouteOptions {
  bool spray = false;          ///< split a flow evenly over all shortest paths (packet spraying)
  bool rail_affinity = false;  ///< a GPU with several NICs picks by channel, not by hash
  bool pxn =
      false;  ///< cross-rail traffic goes over NVLink to the GPU on the destination's rail first
};

/// A share of a flow on one port. ECMP paths have share 1 on each hop; sprayed flows less.
struct Hop {
  PortId port;
  float share = 1;
};

/// The ports a flow crosses, in path order (sprayed: in order of distance from the source).
struct Route {
  std::vector<Hop> hops;
};

/// What tells two flows between the same pair apart, as a UDP 5-tuple does.
struct FlowKey {
  NodeId source, destination;
  std::uint16_t source_port = 10000, destination_port = 100;
  std::int32_t channel = 0;  ///< for rail_affinity
};

/// Finds routes: NVLink inside a server, else shortest paths over switches, equal ones by ECMP.
///
/// ECMP's hash at switch s is MurmurHash3_x86_32 of three little-endian words (source address,
/// destination address, source_port | destination_port << 16) with seed s, modulo the number of
/// next hops in ascending node id; the address of node i is 11.(i/256).(i%256).1. (SimAI's rule.)
///
/// Distances are kept per distinct set of switches that a destination hangs on, over switches only,
/// and made on first use: memory O(leaf sets * switches), never GPUs squared.
/// ERRORS: Error naming both nodes when there is no path. Not for two threads at once.
class Router {
 public:
  explicit Router(const Topology& topology, RouteOptions options = {});
  ~Router();
  Router(Router&&) noexcept;

  /// Overwrites `route`. PRECONDITION: source != destination, both GPUs or NVSwitches.
  void route(const FlowKey& key, Route& route);
  const Topology& topology() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
