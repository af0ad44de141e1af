#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "simulator/collectives/algorithm.h"
#include "simulator/collectives/schedule.h"
#include "simulator/network/network_engine.h"
#include "topologies/topology.h"

namespace lockstep {

/// One collective with the network to itself.
struct LoneCollective {
  std::shared_ptr<const Schedule> schedule;
  Bytes bytes;                ///< the full tensor, for messages
  std::vector<NodeId> nodes;  ///< where each rank runs
  std::vector<Time> entry;    ///< when each rank enters; empty: all at 0
  Time send_latency;          ///< of a transfer, where the schedule has none of its own
};

struct LoneCollectiveResult {
  Time end;  ///< of the last rank, from time 0
  std::int64_t transfers = 0;
};

/// Runs it by the rules of replay(), on a network at time 0. PRECONDITION: nodes and a non-empty
/// entry have an element for each rank of the schedule. ERRORS: as replay().
LoneCollectiveResult run_lone_collective(const LoneCollective& collective, const Topology& topology,
                                         NetworkEngine& network);

/// Servers of these GPUs, numbered in order of first appearance.
GroupShape shape_of_nodes(const Topology& topology, const std::vector<NodeId>& nodes);

}  // namespace lockstep
