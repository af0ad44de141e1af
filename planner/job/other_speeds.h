#pragma once

#include "planner/job/collective_bound.h"
#include "topologies/topology.h"
#include "workloads/workload.h"

namespace lockstep {

/// The topology with the rates of GPUs' own links (to NVSwitches and to each other `nvlink`, to
/// switches `nic`) and all delays times these factors. Links between switches keep their rates.
Topology with_speeds(Topology topology, const Speeds& speeds);

/// The workload on GPUs that are so many times as fast: all that is computed takes so much less.
/// PRECONDITION: operation by operation.
Workload with_gpu_speed(Workload workload, double factor);

}  // namespace lockstep
