#include "app/simulate/run_network.h"

#include <utility>

#include "app/flag_value.h"
#include "app/real_rates.h"
#include "base/error.h"
#include "simulator/collectives/choose.h"
#include "simulator/collectives/rings.h"
#include "simulator/collectives/tune.h"
#include "simulator/replay/fabric_of.h"
#include "simulator/replay/kept_step.h"

namespace lockstep {
namespace {

TunedRequest tuned_by_flags(CollectiveRequest request, const GroupShape& shape,
                            const NcclWishes& wishes, const CollectiveAlgorithm* named) {
  try {
    return tune(std::move(request), shape, shape.fabric, wishes, named);
  } catch (Error& error) {
    throw std::move(error).field("--protocol");
  }
}

void scale(HopLatency& hops, double factor) {
  for (Time* each : {&hops.local, &hops.network, &hops.launch}) {
    *each = Time::seconds(each->seconds() * factor);
  }
}

}  // namespace

StepResult run_on_network(const Workload& workload, const Topology& topology,
                          const SimulateOptions& options, Timeline* timeline,
                          const NetworkFactory& network, const std::optional<FlowOptions>& fold,
                          const std::optional<RecallOptions>& recall) {
  const bool strict = options.flavour == "simai";
  StepOptions step;
  step.simai_flavour = strict;
  step.all_gpus = strict && options.gpus == 0;
  if (!options.send_latency.empty()) {
    step.send_latency = flag_value("--send-latency", options.send_latency, parse_time);
  }
  if (options.chunks_per_stage > 0) {
    step.chunks_per_stage = options.chunks_per_stage;
  }
  step.pp_overlap = options.pp_overlap.value_or(0);
  step.timeline = timeline;
  step.timeline_ranks = options.trace_ranks;
  step.show_progress = !options.quiet;
  if (!options.no_symmetry) {
    step.fold = fold;
  }
  step.recall = recall;
  step.fails_links = options.fails_links;
  step.verify_symmetry = options.verify_symmetry || options.paranoid;
  step.stragglers = options.stragglers;
  step.seed = options.seed;
  step.step = options.step;
  step.explain = options.explain;
  step.detail = options.detail;
  step.kept = options.kept;
  step.shared = options.shared;
  step.with_ports = options.with_ports;
  step.routes = fold;
  step.memory = options.memory;
  step.interference = options.interference_model;
  if (!options.traffic_class.empty()) {
    step.traffic_classes =
        flag_value("--traffic-class", options.traffic_class, TrafficClasses::parse);
  }
  step.limits = options.limits;
  step.trace = options.rows;
  step.meta = options.meta;
  step.trace_first_workers = options.trace_workers == "first";
  algorithm_name(options, CommType::kAllReduce);  // refuses names that do not exist
  const std::int32_t ports = options.rail_affinity ? nic_ports(topology, topology.gpus()) : 1;
  const NcclWishes wishes = nccl_wishes(options);
  const std::optional<NcclRates> rates = real_rates(options, strict);
  ScheduleCache own_schedules;
  ScheduleCache& schedules = options.kept != nullptr ? options.kept->schedules : own_schedules;
  const auto schedule_of = [&](CommType op, Bytes bytes, const GroupShape& shape, bool nvls,
                               bool at_once = false) {
    const CollectiveAlgorithm* named = algorithm_if_able(options, op);
    if (nvls && named == nullptr && nvls_by_flag(options, op, shape)) {
      named = &algorithm_named("nvls", op);
    }
    CollectiveRequest request{.op = op, .bytes = bytes, .channels = options.channels};
    if (strict) {
      request.flavour = CollectiveFlavour::kSimai;
      request.relays = options.pxn;
      return schedules.get(request, shape, named);
    }
    TunedRequest tuned = tuned_by_flags(std::move(request), shape, wishes, named);
    use_all_ports(tuned, shape, ports);
    if (!options.send_latency.empty()) {
      tuned.request.hop_latency.reset();
    } else if (rates) {
      take_real_latencies(*rates, tuned.request);
    }
    if (options.latency_factor != 1 && tuned.request.hop_latency) {
      scale(*tuned.request.hop_latency, options.latency_factor);
    }
    if (named == nullptr) {
      keep_ranks_alike(tuned, shape);
      if (at_once) {
        exchange_within_server(tuned, shape, shape.fabric,
                               static_cast<std::int32_t>(topology.gpus_per_server));
      }
    }
    return schedules.get(tuned.request, shape, tuned.algorithm);
  };
  if (strict) {
    // SimAI knows NVLS in TP groups alone; its topologies have one type of GPUs.
    const bool nvls = options.nvls && simai_knows_nvls(topology.gpu_types.front());
    step.tensor_schedules = [&, nvls](CommType op, Bytes bytes, const GroupShape& shape) {
      const CollectiveAlgorithm* named = algorithm_if_able(options, op);
      const bool ring =
          named == nullptr ? !(nvls && nvls_by_flag(options, op, shape)) : named->name == "ring";
      return schedule_of(op, bytes,
                         ring ? simai_tensor_shape(shape, topology.gpus_per_server) : shape, nvls);
    };
  } else if (!strict && fold && options.channels == 0 && !options.keeps_rings) {
    step.tensor_schedules = [&](CommType op, Bytes bytes, const GroupShape& shape) {
      return schedule_of(op, bytes, shape, true, true);
    };
  }
  return simulate_step(
      workload, topology, network,
      [&](CommType op, Bytes bytes, const GroupShape& shape) {
        return schedule_of(op, bytes, shape, !strict);
      },
      step);
}

}  // namespace lockstep
