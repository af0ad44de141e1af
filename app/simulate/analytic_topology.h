#pragma once

#include "simulator/network/analytic/analytic_options.h"
#include "topologies/topology.h"

namespace lockstep {

/// Sets GPUs and NICs of a server and their bandwidths as the topology's first server has them.
void take_from_topology(const Topology& topology, AnalyticOptions& analytic);

}  // namespace lockstep
