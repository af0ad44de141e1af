#pragma once

#include "simulator/collectives/schedule.h"
#include "topologies/topology.h"

namespace lockstep {

/// The switch of a topology that a SwitchPlace means, seen from the GPU of its `near` rank: at
/// level 0 an NVSwitch linked to the GPU, at level 1 a switch linked to it, at level k + 1 one of
/// the next tier linked to the first at level k; of several, in ascending node id, number `index`
/// modulo their number. O(links of those nodes). ERRORS: Error naming the GPU when there is none.
NodeId switch_node(const Topology& topology, const Adjacency& adjacency, NodeId gpu,
                   const SwitchPlace& place);

}  // namespace lockstep
