#include "simulator/replay/step_simulation.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "simulator/replay/collective_channels.h"
#include "simulator/replay/exposure.h"
#include "simulator/replay/fold_check.h"
#include "simulator/replay/kept_step.h"
#include "simulator/replay/layer_report.h"
#include "simulator/replay/network_changes.h"
#include "simulator/replay/op_names.h"
#include "simulator/replay/pipeline.h"
#include "simulator/replay/shared_step.h"
#include "simulator/replay/simai_latency.h"
#include "simulator/replay/simai_layers.h"
#include "simulator/replay/stage_hop.h"
#include "simulator/replay/step_fold.h"
#include "simulator/replay/step_layout.h"
#include "simulator/replay/step_programs.h"
#include "simulator/replay/step_records.h"
#include "simulator/replay/straggler_plan.h"
#include "simulator/replay/together.h"

namespace lockstep {
namespace {

StragglerContext straggler_context(const RankPrograms& work, const std::vector<NodeId>& nodes,
                                   const Topology& topology, const StepOptions& options) {
  StragglerContext context;
  context.families = work.families;
  context.node_of_rank = nodes;
  for (const NodeId node : nodes) {
    context.server_of_rank.push_back(topology.nodes[node.index()].server);
  }
  context.topology = &topology;
  context.seed = options.seed;
  context.step = options.step;
  return context;
}

/// The compiled workload: shared or kept, if this step is, else in `own`.
const StepPrograms& programs_of(const Workload& workload, std::int64_t gpus,
                                const StepOptions& options, std::optional<StepPrograms>& own) {
  if (options.shared != nullptr) {
    return options.shared->programs([&] { return StepPrograms::of(workload, gpus, options); });
  }
  if (options.kept == nullptr) {
    return own.emplace(StepPrograms::of(workload, gpus, options));
  }
  KeptStep& kept = *options.kept;
  if (!kept.programs) {
    kept.programs.emplace(StepPrograms::of(workload, gpus, options));
  } else if (kept.computations != kept.programs_for && !kept.programs->retime(workload)) {
    kept.programs.emplace(StepPrograms::of(workload, gpus, options));
    kept.forget_programs();
  }
  kept.programs_for = kept.computations;
  return *kept.programs;
}

/// Likewise.
std::shared_ptr<const ProgramFacts> facts_of(const RankPrograms& work, const StepOptions& options) {
  if (options.shared != nullptr) {
    return options.shared->facts();
  }
  std::shared_ptr<const ProgramFacts> none;
  auto& facts = options.kept != nullptr ? options.kept->facts : none;
  if (facts == nullptr) {
    facts = std::make_shared<const ProgramFacts>(work);
  }
  return facts;
}

/// What collectives that were recalled would have put on the ports.
void add_recalled(const Topology& topology, const ReplayResult& run, std::vector<PortUse>& ports) {
  for (std::size_t port = 0; port < run.recalled_bytes.size(); ++port) {
    const Bandwidth rate = topology.class_of(LinkId(port / 2)).rate;
    const Bytes bytes = run.recalled_bytes[port];
    const PortUse seen = ports[port];
    ports[port].bytes += bytes;
    ports[port].busy +=
        seen.bytes > Bytes(0) && seen.busy > Time()
            ? Time::seconds(seen.busy.seconds() * (static_cast<double>(bytes.count()) /
                                                   static_cast<double>(seen.bytes.count())))
            : Time::seconds(static_cast<double>(bytes.count()) / rate.bytes_per_second());
  }
}

/// How the replay runs the programs, stragglers included. What it names must outlive it.
ReplayOptions replay_options_of(const StepPrograms& compiled, const std::vector<NodeId>& nodes,
                                const Topology& topology, const ScheduleSource& schedules,
                                const OpNames& names, const StragglerPlan& plan,
                                const StepOptions& options) {
  const bool strict = options.simai_flavour;
  ReplayOptions replay;
  replay.send_latency = options.send_latency + (strict ? kSimaiBusLatency : Time());
  replay.reduce_latency = strict ? kSimaiReduceLatency : Time();
  replay.receive_latency = strict ? kSimaiBusLatency : Time();
  replay.op_name = [&names](std::int32_t rank, std::int32_t op) { return names(rank, op); };
  replay.show_progress = options.show_progress;
  replay.tensor_schedules = options.tensor_schedules;
  replay.recall = options.recall;
  replay.limits = options.limits;
  replay.interference = options.interference;
  if (!options.interference.measured.empty()) {
    replay.channels =
        CollectiveChannels(compiled.work, nodes, topology, schedules, options.tensor_schedules);
  }
  if (!options.traffic_classes.empty()) {
    replay.recall.reset();  // one class may wait for all of another
    replay.traffic_class = [&compiled, &options](GroupKind kind, CommType op, std::int32_t rank) {
      const auto after = std::ranges::upper_bound(compiled.jobs, rank, {}, &StepJob::first_rank);
      const auto job = static_cast<std::int32_t>(after - compiled.jobs.begin()) - 1;
      return options.traffic_classes.of(kind, op, job);
    };
  }
  replay.changes = plan.changes();
  if (!replay.changes.empty() || !plan.faults().empty()) {
    replay.recall.reset();  // links are not what they were
  }
  if (!plan.empty()) {
    replay.duration = [&plan](std::int32_t rank, std::int32_t op, const ProgramOp& what,
                              Time begin) { return plan.duration(rank, op, what, begin); };
    if (plan.steady()) {
      replay.steady_speeds = plan.colours();
    }
  }
  if (plan.uneven()) {
    replay.recall.reset();  // no two of them are alike
    replay.loads = [&plan](const ProgramOp& what, std::int32_t group) {
      return plan.loads_of(what, group);
    };
  }
  return replay;
}

/// What the replay says of the step as a whole.
void tell_run(const ReplayResult& run, const Interference& interference, StepResult& result) {
  result.first_rank_end = *std::ranges::min_element(run.rank_end);
  result.last_rank_end = run.end;
  result.flows = run.transfers;
  result.replay_work = run.work;
  result.recalled_flows = run.recalled;
  result.error = run.error;
  const auto& measured = interference.measured;
  if (!measured.empty() && run.most_blocks > measured.back().blocks) {
    result.warnings.push_back(fmt::format(
        "computations run beside up to {} thread blocks of collectives; the interference was "
        "measured up to {} and is taken from there",
        run.most_blocks, measured.back().blocks));
  }
}

/// When each job ended.
std::vector<JobResult> job_results(const StepPrograms& compiled, const ReplayResult& run) {
  std::vector<JobResult> jobs;
  for (const StepJob& each : compiled.jobs) {
    const auto first = run.rank_end.begin() + each.first_rank;
    jobs.push_back({each.source->name, each.first_rank, each.ranks,
                    *std::max_element(first, first + each.ranks)});
  }
  return jobs;
}

/// What rank 0 computed, its waiting between computations not included.
Time computed(const Program& program, std::span<const OpTiming> timing) {
  Time sum;
  for (std::size_t i = 0; i < program.ops().size(); ++i) {
    const bool computes = program.ops()[i].comm == CommType::kNone;
    sum += computes ? timing[i].end - timing[i].begin : Time();
  }
  return sum;
}

/// Stages of a layer table run alike: the bubble and what goes from one to the next are added.
void add_stages(const LayerTable& table, Time hop, const StepOptions& options, StepResult& result) {
  result.bubble = pipeline_bubble(result);
  if (!options.simai_flavour) {
    const Parallelism& parallel = result.parallel;
    const Time pp = Time::seconds(hop.seconds() * 2.0 * static_cast<double>(parallel.vpp) *
                                  static_cast<double>(parallel.ga) * (1 - options.pp_overlap));
    result.exposed_by_group[static_cast<std::size_t>(GroupKind::kPp)] = pp;
    if (result.total > Time()) {  // the bubble is so many times what may be off
      result.error += Time::seconds(result.error.seconds() * (result.bubble / result.total));
    }
    result.total += result.bubble + pp;
  }
  warn_of_policy(table, result.warnings);
}

}  // namespace

StepResult simulate_step(const Workload& workload, const Topology& topology,
                         const NetworkFactory& factory, const ScheduleSource& schedules,
                         const StepOptions& options) {
  const bool strict = options.simai_flavour;
  std::vector<NodeId> nodes = topology.gpus();
  std::optional<StepPrograms> own;
  const StepPrograms& compiled = programs_of(workload, std::ssize(nodes), options, own);
  nodes.resize(static_cast<std::size_t>(compiled.work.ranks()));
  const OpNames names(compiled);
  StepRecords records(compiled, names, options);
  const StragglerContext context = straggler_context(compiled.work, nodes, topology, options);
  const StragglerPlan plan(options.stragglers, context);
  ReplayOptions replay_options =
      replay_options_of(compiled, nodes, topology, schedules, names, plan, options);
  const NetworkFactory network_with_faults = [&] {
    std::unique_ptr<NetworkEngine> network = factory();
    for (const LinkFault& fault : plan.faults()) {
      network->add_fault(fault);
    }
    return network;
  };
  const auto in_full = [&](NetworkEngine& network) {
    return replay(compiled.work, nodes, topology, network, schedules, replay_options);
  };

  std::optional<StepFolder> folder;
  std::shared_ptr<StepFold> fold;
  if (options.fold && plan.folds()) {
    if (options.kept != nullptr) {
      options.kept->trim();
    }
    folder.emplace(StepPlace{compiled.work, nodes, topology, *options.fold, schedules,
                             replay_options, facts_of(compiled.work, options)},
                   plan.colours(), options.kept, options.shared);
    folder->fold_ahead();
    fold = folder->fold(0);
    if (!fold) {
      folder.reset();  // what it folds ahead uses the schedules
    }
  }
  std::shared_ptr<StepFold> final_fold = fold;
  if (records.explains() && fold && folder->phases() > 1) {
    final_fold = folder->fold(folder->phases() - 1);
  }
  records.listen(replay_options, final_fold.get());

  StepResult result;
  ReplayResult run;
  if (fold) {
    replay_options.recall.reset();  // what is folded is exact
    FoldedResult folded = replay_folded(
        *folder, fold, options.verify_symmetry || (options.with_ports && options.kept == nullptr));
    run = std::move(folded.replay);
    result.ports = std::move(folded.ports);
    if (options.verify_symmetry) {
      replay_options.traced = nullptr;
      replay_options.on_op = nullptr;
      const std::unique_ptr<NetworkEngine> network = network_with_faults();
      check_fold(run, in_full(*network), names);
      check_ports(result.ports, network->port_use(), !replay_options.changes.empty());
      result.compared = std::ssize(nodes);
    }
  } else {
    if (options.verify_symmetry) {
      result.compared = 0;
    }
    const std::unique_ptr<NetworkEngine> network = network_with_faults();
    if (options.routes && !options.routes->routes.spray &&
        meet_by_packets({compiled.work, nodes, topology, *options.routes, schedules, replay_options,
                         facts_of(compiled.work, options)})) {
      if (options.fails_links) {
        result.warnings.emplace_back(
            "links fail: messages share links as a fluid and not packet by packet, which may be "
            "faster; compare with steps of --congestion none");
      } else {
        network->meet_by_packets();
      }
    }
    if (announce(*network, replay_options.changes)) {
      replay_options.changes.clear();
    }
    if (network->runs_by_chance()) {
      replay_options.recall.reset();  // no two collectives are alike
    }
    run = in_full(*network);
    result.ports = network->port_use();
    result.packets = network->packet_statistics();
    result.drawn = network->has_queues() && !result.packets;
    add_recalled(topology, run, result.ports);
  }

  // A packet engine is a process of its own, too dear to ask; uneven loads are of one collective.
  const bool asks = !result.packets && !replay_options.loads;
  records.write(
      asks ? StepTrace::Together([&](const ProgramOp& op, std::span<const std::int32_t> ranks) {
        return time_together(compiled.work, op, ranks, nodes, topology, *factory(), schedules,
                             replay_options);
      })
           : nullptr);
  const StepJob& job = compiled.jobs.front();
  result.parallel = job.source->parallel;
  result.parallel.gpus = job.ranks;
  result.gpus = compiled.work.ranks();
  tell_run(run, options.interference, result);
  if (replay_options.recall &&
      run.error.seconds() > run.end.seconds() * replay_options.recall->error_budget) {
    result.warnings.emplace_back(
        "told collectives may be off by more than --error-budget: how much those of a kind differ, "
        "and whom they meet, is known only afterwards");
  }
  records.explain(topology, nodes, schedules, result);
  result.memory =
      records.memory([&](std::int32_t rank) { return context.place(GroupKind::kPp, rank); });
  result.jobs = job_results(compiled, run);
  result.total = strict ? run.rank_end.front() : run.end;
  Time job_end = compiled.jobs.size() > 1 ? result.jobs.front().end : result.total;
  result.others = strict ? Time() : result.total - job_end;
  result.skew = strict ? Time() : job_end - run.rank_end.front();
  const Program& program = compiled.work.program(0);
  if (const auto* table = std::get_if<LayerTable>(&job.source->work)) {
    result.compute = computed(program, run.first_rank);
    if (!strict) {
      settle_pipeline(result.parallel, options.chunks_per_stage, result.warnings);
    }
    std::optional<Parallelism> header;
    if (strict) {
      header = job.source->parallel;
      header->gpus = header->gpus == 0 ? job.ranks : header->gpus;
    }
    report_layers(*table, job.layers, program, compiled.work.families, run.first_rank, header,
                  result);
    const Time hop = strict
                         ? Time()
                         : stage_hop(*table, result.parallel, topology, nodes, network_with_faults,
                                     plan.changes(), replay_options.send_latency);
    add_stages(*table, hop, options, result);
    job_end += strict ? Time() : result.exposed_by_group[static_cast<std::size_t>(GroupKind::kPp)];
    result.exposed = job_end - result.compute;
  } else {
    const Exposure exposure = exposure_of(program, compiled.work.families, run.first_rank);
    result.compute = exposure.compute;
    result.exposed_by_group = exposure.by_group;
    result.bubble = exposure.bubble;
    result.exposed = job_end - exposure.compute - exposure.bubble;
  }
  return result;
}

}  // namespace lockstep
