#pragma once

#include <string>
#include <vector>

#include "app/simulate/simulate_options.h"
#include "simulator/replay/step_result.h"
#include "topologies/topology.h"
#include "trace/timeline.h"
#include "workloads/workload.h"

namespace lockstep {

/// `lockstep simulate --engine packet`; fills `timeline` when it is given.
StepResult run_packet(const Workload& workload, const Topology& topology,
                      const SimulateOptions& options, Timeline* timeline);

}  // namespace lockstep
