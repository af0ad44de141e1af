#pragma once

#include <vector>

#include "simulator/network/flow/flow_options.h"
#include "simulator/replay/critical_path.h"
#include "simulator/replay/replay.h"
#include "topologies/topology.h"

namespace lockstep {

/// The communication of a critical path by link, the longest first (ties by port). A piece counts
/// for the port that limits what its rank sends and receives in it: of all ports that these
/// transfers cross the one that takes longest for them at its full rate, the lowest of equal ones.
/// So this says where more bandwidth would help first; it does not say who else is on the link.
/// Pieces of a rank that moves nothing count for none. `flow` says how transfers are routed.
/// O(pieces + kinds of communication of each rank on the path times its transfers times hops).
/// ERRORS: no route.
std::vector<LinkShare> critical_links(const RankPrograms& work,
                                      const std::vector<NodeId>& node_of_rank,
                                      const Topology& topology, const FlowOptions& flow,
                                      const ScheduleSource& schedules, const CriticalPath& path);

}  // namespace lockstep
