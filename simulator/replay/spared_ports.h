#pragma once

#include <span>
#include <vector>

#include "simulator/network/flow/flow_options.h"
#include "simulator/replay/replay.h"
#include "simulator/replay/ways.h"
#include "topologies/topology.h"

namespace lockstep {

/// Which ports can never limit flows on these ways, however they share the others (one entry a
/// port, 1: spared). With q the first port of a flow and a its share on port p over that on q:
///
///     load of p <= sum over first ports q of (largest a of its flows) * capacity of q
///
/// since the flows over q have no more than its capacity together. Where that fits into p's own
/// capacity, p's constraint follows from others and leaving it out changes no allocation. The same
/// holds from the other end, with last ports. First ports are never spared, and last ones only by
/// first ones, so that no two ports are spared because of each other. Capacities are the least and
/// the largest that `changes` make them. In whole numbers: exact.
///
/// O(hops of the ways). ERRORS: those of PathFinder.
std::vector<char> spared_ports(const Topology& topology, const FlowOptions& flow,
                               std::vector<Way> ways, std::span<const NetworkChange> changes);

}  // namespace lockstep
