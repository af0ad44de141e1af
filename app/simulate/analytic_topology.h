#pragma once

#include "simulator/network/analytic/analytic_options.h"
#include "topologies/topology.h"

namespace lockstep {

/// Sets GPUs and NICs of a server and their bandwidths as the topology has them; where servers
/// differ, those of the least. A GPU's NVLinks count together, to all its NVSwitches or to other
/// GPUs, of which two then have the link between them; without any, GPUs of a server meet over
/// their NICs. O(links).
void take_from_topology(const Topology& topology, AnalyticOptions& analytic);

}  // namespace lockstep
