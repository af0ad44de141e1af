#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topologies/topology.h"

namespace lockstep {

/// A topology as a tree of parts within parts: a server (tier 0), the servers that share leaf
/// switches (tier 1), a pod (tier 2), and so on. A part of tier t is what hangs together over
/// GPUs, NVSwitches and switches of tiers up to t, links within a tier left out. Parts of equal
/// shape are alike: the same numbers of nodes, links and alike parts inside.
struct TopologyPart {
  std::int32_t tier = 0;
  std::vector<NodeId> switches;          ///< of this tier
  std::vector<NodeId> gpus, nvswitches;  ///< of a server
  std::vector<TopologyPart> children;    ///< in order of their first GPU
  std::string shape;
  std::int64_t gpu_count = 0;
};

/// The root has all GPUs; it has no switches where the highest tier leaves several parts (a torus).
/// O((nodes + links) * tiers).
TopologyPart fold(const Topology& topology);

}  // namespace lockstep
