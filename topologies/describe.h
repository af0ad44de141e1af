#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "topologies/bisection.h"
#include "topologies/hops.h"
#include "topologies/topology.h"

namespace lockstep {

/// Servers (NVLink domains) that are alike.
struct ServerKind {
  std::string gpu_type;  ///< "H100", or "H100+A100" within one domain
  std::int64_t gpus = 0, nvswitches = 0, count = 0;
};

/// Links of one class between the same kinds of nodes.
struct LinkGroup {
  std::string from, to;  ///< "GPU", "NVSwitch", "tier 1", …
  std::int64_t count = 0;
  LinkClass link_class;
};

/// All links of a topology, from GPUs upwards. O(links).
std::vector<LinkGroup> link_groups(const Topology& topology);

/// All switches of one tier. Rates are of all of them together, one way.
struct TierSummary {
  std::int32_t tier = 0;
  std::int64_t switches = 0;
  double down_Bps = 0;  ///< to GPUs, NVSwitches and lower tiers
  double up_Bps = 0;    ///< to higher tiers
  double side_Bps = 0;  ///< to the same tier (each link counts at both ends)
  /// down / up of the least and the most loaded switch; nothing where a switch has no way up.
  std::optional<double> least_oversubscription, most_oversubscription;
};

/// What `lockstep topology describe` tells.
struct TopologyDescription {
  std::string name;
  std::int64_t gpus = 0, nvswitches = 0, switches = 0, links = 0;
  std::vector<ServerKind> servers;
  std::vector<LinkGroup> link_groups;
  std::vector<TierSummary> tiers;
  std::optional<Bisection> bisection;  ///< nothing for a single GPU
  HopCounts hops;
};

/// PRECONDITION: validate(topology) passes.
TopologyDescription describe(const Topology& topology);

/// A table for the terminal.
std::string to_text(const TopologyDescription& description);
/// Schema "lockstep-topology-description/1".
std::string to_json_text(const TopologyDescription& description);

}  // namespace lockstep
