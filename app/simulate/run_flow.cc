#include "app/simulate/run_flow.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "app/flag_value.h"
#include "app/real_rates.h"
#include "app/simulate/run_network.h"
#include "simulator/network/checked_network.h"
#include "simulator/network/flow/flow_engine.h"

namespace lockstep {
namespace {

/// The options with `spray` as it is to be: as the flags say; else transfers are sprayed, as
/// today's fabrics route adaptively (docs/adr/0013-sprayed-by-default.md), but for those of SimAI's
/// tables of layers, in whose network flows hash.
SimulateOptions with_routes(SimulateOptions options, const Workload& workload) {
  const bool hashed = std::ranges::any_of(workload.jobs, [](const WorkloadJob& job) {
    return std::holds_alternative<LayerTable>(job.work);
  });
  options.spray = options.spray.value_or(!hashed);
  return options;
}

/// What the replay must know of the network to tell collectives again; nothing where it is not to.
std::optional<RecallOptions> recall_options(const SimulateOptions& options,
                                            const FlowOptions& flow) {
  RecallOptions recall;
  recall.error_budget = error_budget(options.error_budget);
  if (recall.error_budget <= 0) {
    return std::nullopt;
  }
  recall.wait_for_last = options.flavour != "simai";
  recall.payload = flow.payload;
  recall.header = flow.header;
  recall.ack = Bytes(0);  // ACKs load no port
  recall.routes = flow.routes;
  recall.fresh_ports = flow.fresh_ports;
  recall.least_share = std::min(flow.local_share, flow.network_share);
  return recall;
}

}  // namespace

StepResult run_flow(const Workload& workload, const Topology& topology,
                    const SimulateOptions& given, Timeline* timeline) {
  const SimulateOptions options = with_routes(given, workload);
  const bool simai = options.flavour == "simai";
  std::vector<std::string> warnings;
  FlowOptions flow = flow_options(options, simai);
  flow.seed = options.seed;
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
      flow, recall_options(options, flow));
  result.routes = flow.routes.spray ? "sprayed" : "hashed";
  result.warnings.insert(result.warnings.begin(), warnings.begin(), warnings.end());
  return result;
}

}  // namespace lockstep
