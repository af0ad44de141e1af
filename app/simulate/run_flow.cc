#include "app/simulate/run_flow.h"

#include <memory>

#include "app/simulate/flag_value.h"
#include "app/simulate/run_network.h"
#include "simulator/network/flow/flow_engine.h"

namespace lockstep {
namespace {

FlowOptions flow_options(const SimulateOptions& options) {
  FlowOptions flow = options.flavour == "simai" ? simai_flow_options() : FlowOptions{};
  if (!options.mtu.empty()) {
    flow.payload = flag_value("--mtu", options.mtu, parse_bytes);
  }
  if (!options.header.empty()) {
    flow.header = flag_value("--header", options.header, parse_bytes);
  }
  flow.routes.pxn = options.pxn;
  flow.routes.spray = options.spray;
  flow.routes.rail_affinity = options.rail_affinity;
  return flow;
}

}  // namespace

StepResult run_flow(const Workload& workload, const Topology& topology,
                    const SimulateOptions& options, Timeline* timeline) {
  const FlowOptions flow = flow_options(options);
  return run_on_network(
      workload, topology, options, timeline,
      [&] { return std::make_unique<FlowEngine>(topology, flow); }, flow);
}

}  // namespace lockstep
