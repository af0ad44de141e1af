#pragma once

#include <span>

#include "simulator/network/analytic/analytic_options.h"
#include "topologies/topology.h"

namespace lockstep {

/// Sets GPUs and NICs of a server and their bandwidths as those GPUs have them that a job is on;
/// where they differ, those of the least (of the most GPUs a server has). A GPU's NVLinks count
/// together, to all its NVSwitches or to other GPUs, of which two then have the link between them;
/// without any, GPUs of a server meet over their NICs. O(links).
///
/// PRECONDITION: at least one GPU.
void take_from_topology(const Topology& topology, std::span<const NodeId> gpus,
                        AnalyticOptions& analytic);

}  // namespace lockstep
