#include "app/simulate/run_flow.h"

#include <memory>

#include "app/flag_value.h"
#include "app/simulate/run_network.h"
#include "simulator/network/flow/flow_engine.h"

namespace lockstep {
StepResult run_flow(const Workload& workload, const Topology& topology,
                    const SimulateOptions& options, Timeline* timeline) {
  const FlowOptions flow = flow_options(options, options.flavour == "simai");
  return run_on_network(
      workload, topology, options, timeline,
      [&] { return std::make_unique<FlowEngine>(topology, flow); }, flow);
}

}  // namespace lockstep
