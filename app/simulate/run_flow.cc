#include "app/simulate/run_flow.h"

#include <memory>

#include "base/error.h"
#include "simulator/collectives/choose.h"
#include "simulator/network/flow/flow_engine.h"
#include "simulator/replay/step_simulation.h"

namespace lockstep {
namespace {

/// Runs a parser of the unit library on a flag's value; its error names the flag.
template <class Parse>
auto flag(const char* name, const std::string& text, Parse parse) {
  try {
    return parse(text);
  } catch (Error& error) {
    throw std::move(error).field(name);
  }
}

FlowOptions flow_options(const SimulateOptions& options, bool strict) {
  FlowOptions flow = strict ? simai_flow_options() : FlowOptions{};
  if (!options.mtu.empty()) {
    flow.payload = flag("--mtu", options.mtu, parse_bytes);
  }
  if (!options.header.empty()) {
    flow.header = flag("--header", options.header, parse_bytes);
  }
  flow.routes.pxn = options.pxn;
  flow.routes.spray = options.spray;
  flow.routes.rail_affinity = options.rail_affinity;
  return flow;
}

}  // namespace

StepResult run_flow(const Workload& workload, const Topology& topology,
                    const SimulateOptions& options, Timeline* timeline) {
  const bool strict = options.flavour == "simai";
  const FlowOptions flow = flow_options(options, strict);
  StepOptions step;
  step.simai_flavour = strict;
  step.all_gpus = strict && options.gpus == 0;
  step.send_latency = flag("--send-latency", options.send_latency, parse_time);
  if (options.chunks_per_stage > 0) {
    step.chunks_per_stage = options.chunks_per_stage;
  }
  step.pp_overlap = options.pp_overlap.value_or(0);
  step.timeline = timeline;
  step.timeline_ranks = options.trace_ranks;
  step.show_progress = true;
  const auto flavour = strict ? CollectiveFlavour::kSimai : CollectiveFlavour::kDefault;
  ScheduleCache schedules;
  return simulate_step(
      workload, topology, [&] { return std::make_unique<FlowEngine>(topology, flow); },
      [&](CommType op, Bytes bytes, const GroupShape& shape) {
        return schedules.get({.op = op, .bytes = bytes, .flavour = flavour}, shape);
      },
      step);
}

}  // namespace lockstep
