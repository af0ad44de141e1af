#pragma once

#include <string>
#include <vector>

#include "base/ids.h"
#include "simulator/replay/step_result.h"
#include "topologies/topology.h"

namespace lockstep {

/// What one direction of a link carried in a step.
struct PortLoad {
  PortId port;
  Bytes bytes;             ///< wire bytes, headers included
  Time busy;               ///< those bytes at the link's full rate
  double utilisation = 0;  ///< busy over the step's time
};

/// The ports of `result` that carried something, the busiest first (ties by port).
std::vector<PortLoad> busiest_ports(const StepResult& result);

/// "gpu 3", "nvswitch 16", "leaf 18", "spine 20", "core 30" or "switch 40" (tier unknown).
std::string node_name(const Topology& topology, NodeId node);

/// Where the port's direction starts and ends.
struct PortEnds {
  NodeId from, to;
};
/// PRECONDITION: the port is one of the topology's.
PortEnds ends_of(const Topology& topology, PortId port);

}  // namespace lockstep
