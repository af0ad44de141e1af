#pragma once

#include "app/simulate/simulate_options.h"
#include "simulator/replay/step_simulation.h"
#include "topologies/topology.h"
#include "trace/timeline.h"
#include "workloads/workload.h"

namespace lockstep {

/// `lockstep simulate` on an engine that carries out every transfer; fills `timeline` when it is
/// given. With the flow engine's options the step is folded by symmetry where it can be, and
/// collectives are such that it can (simulator/collectives/tune.h), folded or not; with
/// `recall`, collectives seen before are told again.
StepResult run_on_network(const Workload& workload, const Topology& topology,
                          const SimulateOptions& options, Timeline* timeline,
                          const NetworkFactory& network,
                          const std::optional<FlowOptions>& fold = {},
                          const std::optional<RecallOptions>& recall = {});

}  // namespace lockstep
