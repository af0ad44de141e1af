#pragma once

#include <span>

#include "simulator/replay/ways.h"
#include "topologies/routing.h"
#include "topologies/topology.h"

namespace lockstep {

/// Whether all of these ways, and those of what comes back on them, are the same whatever a
/// transfer's source port is. O(hops of the ways). ERRORS: no route.
bool single_ways(const Topology& topology, const RouteOptions& routes, std::span<const Way> ways);

}  // namespace lockstep
