#include "app/simulate/run_flow.h"

#include <memory>
#include <optional>
#include <utility>

#include "app/flag_value.h"
#include "app/real_rates.h"
#include "app/simulate/run_network.h"
#include "simulator/network/checked_network.h"
#include "simulator/network/flow/flow_engine.h"

namespace lockstep {
StepResult run_flow(const Workload& workload, const Topology& topology,
                    const SimulateOptions& options, Timeline* timeline) {
  const bool simai = options.flavour == "simai";
  std::vector<std::string> warnings;
  FlowOptions flow = flow_options(options, simai);
  if (const std::optional<NcclRates> rates = real_rates(options, simai)) {
    take_real_rates(*rates, flow);
  }
  add_transport(options, simai, topology, options.seed, flow, warnings);
  StepResult result = run_on_network(
      workload, topology, options, timeline,
      [&]() -> std::unique_ptr<NetworkEngine> {
        auto engine = std::make_unique<FlowEngine>(topology, flow);
        if (!options.paranoid) {
          return engine;
        }
        engine->certify();
        return std::make_unique<CheckedNetwork>(std::move(engine), topology);
      },
      flow);
  result.warnings.insert(result.warnings.begin(), warnings.begin(), warnings.end());
  return result;
}

}  // namespace lockstep
