#pragma once

#include "app/simulate/simulate_options.h"
#include "simulator/replay/step_result.h"
#include "topologies/topology.h"
#include "workloads/workload.h"

namespace lockstep {

/// `lockstep simulate --engine analytic`. What flags leave open is taken from `topology` if it is
/// given: GPUs and NICs of a server, bandwidths, GPU type.
StepResult run_analytic(const Workload& workload, const Topology* topology,
                        const SimulateOptions& options);

}  // namespace lockstep
