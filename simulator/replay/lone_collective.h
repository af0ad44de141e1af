#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "simulator/collectives/algorithm.h"
#include "simulator/collectives/schedule.h"
#include "simulator/network/flow/flow_options.h"
#include "simulator/network/network_engine.h"
#include "simulator/replay/replay.h"
#include "topologies/topology.h"

namespace lockstep {

/// One collective with the network to itself.
struct LoneCollective {
  std::shared_ptr<const Schedule> schedule;
  Bytes bytes;                ///< the full tensor, for messages
  std::vector<NodeId> nodes;  ///< where each rank runs
  std::vector<Time> entry;    ///< when each rank enters; empty: all at 0
  Time send_latency;          ///< of a transfer, where the schedule has none of its own
  /// As in ReplayOptions; only where transfers are run one by one (run_lone_collective()).
  Time reduce_latency, receive_latency;
  std::vector<NetworkChange> changes;  ///< of links' bandwidth, in order of time
  std::vector<LinkFault> faults;

  /// Links stay as they are.
  bool is_steady() const { return changes.empty() && faults.empty(); }
};

struct LoneCollectiveResult {
  Time end;    ///< of the last rank, from time 0
  Time error;  ///< by how much `end` may be off; 0: exact
  std::int64_t transfers = 0;
  std::int64_t simulated = 0;           ///< of those, how many were run one by one
  std::int64_t slots = 0, classes = 0;  ///< connections, and how many kinds of them behave alike
};

/// Runs it by the rules of replay(), on a network at time 0. PRECONDITION: nodes and a non-empty
/// entry have an element for each rank of the schedule. ERRORS: as replay().
LoneCollectiveResult run_lone_collective(const LoneCollective& collective, const Topology& topology,
                                         NetworkEngine& network);

struct LoneCollectiveOptions {
  bool symmetry = true;      ///< simulate one of each class of transfers that behave alike
  bool fast_forward = true;  ///< skip what repeats
  /// The part of the end by which it may be off where nothing repeats exactly (steady_end.h); 0:
  /// exact.
  double error_budget = 0;
  /// Also run it without either and compare every transfer's end. ERRORS: then Error if any
  /// differs.
  bool verify = false;
};

/// Whether its messages meet by packets (NetworkEngine::meet_by_packets()): with fresh ports, where
/// these decide the way of any, and in SimAI's rings with relays. O(slots x hops).
bool meet_by_packets(const LoneCollective& collective, const Topology& topology,
                     const FlowOptions& flow);

/// The same on the flow engine, exactly, but faster: what is alike is simulated once (symmetry.h)
/// and what repeats is skipped (flow_graph_run.h). With what these cannot do (new ports for every
/// transfer, transfers of unequal sizes on one connection, a law) it is run_lone_collective().
LoneCollectiveResult run_on_flow_engine(LoneCollective collective, const Topology& topology,
                                        const FlowOptions& flow,
                                        const LoneCollectiveOptions& options);

/// Servers of these GPUs, numbered in order of first appearance.
GroupShape shape_of_nodes(const Topology& topology, const std::vector<NodeId>& nodes);

}  // namespace lockstep
