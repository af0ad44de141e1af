#pragma once

#include "base/ids.h"
#include "base/units.h"
#include "topologies/topology.h"

namespace lockstep {

/// From when a full packet should have arrived until what its receiver asks for then does, on the
/// longest of the shortest ways between GPUs over a link: the request goes back over every hop of
/// the way, and a packet of `wire` bytes comes. Requests are short, and nothing queues.
/// O(nodes + links).
Time longest_round_trip(const Topology& topology, LinkId link, Bytes wire);

}  // namespace lockstep
