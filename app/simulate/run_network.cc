#include "app/simulate/run_network.h"

#include "app/simulate/flag_value.h"
#include "simulator/collectives/choose.h"

namespace lockstep {

StepResult run_on_network(const Workload& workload, const Topology& topology,
                          const SimulateOptions& options, Timeline* timeline,
                          const NetworkFactory& network) {
  const bool strict = options.flavour == "simai";
  StepOptions step;
  step.simai_flavour = strict;
  step.all_gpus = strict && options.gpus == 0;
  step.send_latency = flag_value("--send-latency", options.send_latency, parse_time);
  if (options.chunks_per_stage > 0) {
    step.chunks_per_stage = options.chunks_per_stage;
  }
  step.pp_overlap = options.pp_overlap.value_or(0);
  step.timeline = timeline;
  step.timeline_ranks = options.trace_ranks;
  step.show_progress = !options.quiet;
  step.stragglers = options.stragglers;
  step.seed = options.seed;
  step.step = options.step;
  const auto flavour = strict ? CollectiveFlavour::kSimai : CollectiveFlavour::kDefault;
  ScheduleCache schedules;
  return simulate_step(
      workload, topology, network,
      [&](CommType op, Bytes bytes, const GroupShape& shape) {
        return schedules.get({.op = op, .bytes = bytes, .flavour = flavour}, shape);
      },
      step);
}

}  // namespace lockstep
