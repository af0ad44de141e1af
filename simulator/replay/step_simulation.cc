#include "simulator/replay/step_simulation.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "simulator/replay/collective_channels.h"
#include "simulator/replay/critical_links.h"
#include "simulator/replay/exposure.h"
#include "simulator/replay/folded_runs.h"
#include "simulator/replay/kept_step.h"
#include "simulator/replay/layer_report.h"
#include "simulator/replay/pipeline.h"
#include "simulator/replay/shared_step.h"
#include "simulator/replay/step_detail.h"
#include "simulator/replay/step_fold.h"
#include "simulator/replay/step_programs.h"
#include "simulator/replay/step_timeline.h"
#include "simulator/replay/step_trace.h"
#include "simulator/replay/straggler_plan.h"

namespace lockstep {
namespace {

constexpr std::string_view kSimulatedPolicy = "HYBRID_TRANSFORMER_FWD_IN_BCKWD";
constexpr Time kBusLatency = Time::ns(10);     // SimAI: before every transfer
constexpr Time kReduceLatency = Time::ns(30);  // SimAI: three memory accesses of 10 ns

/// Names operations for messages and pictures.
class OpNames {
 public:
  explicit OpNames(const StepPrograms& compiled) : compiled_(compiled) {
    for (const StepJob& job : compiled.jobs) {
      std::vector<std::string>& names = names_.emplace_back();
      if (const auto* table = std::get_if<LayerTable>(&job.source->work)) {
        const auto count = compiled.work.program(job.first_rank).ops().size();
        names.assign(count, "recompute");
        for (std::size_t i = 0; i < job.layers.size(); ++i) {
          const std::string& layer = table->names[static_cast<std::size_t>(table->layers[i].name)];
          name(names, job.layers[i].forward, layer + " forward");
          name(names, job.layers[i].input_grad, layer + " input gradient");
          name(names, job.layers[i].weight_grad, layer + " weight gradient");
        }
      }
    }
  }

  std::string operator()(std::int32_t rank, std::int32_t op) const {
    const auto [job, program] = of(rank);
    if (program != nullptr) {
      return program->ops[static_cast<std::size_t>(op)].name;
    }
    return names_[job][static_cast<std::size_t>(op)];
  }

  /// The line that it is drawn on: its stream, or for layers what it communicates over.
  std::string track(std::int32_t rank, std::int32_t op) const {
    const ProgramOp& what = compiled_.work.program(rank).ops()[static_cast<std::size_t>(op)];
    const auto [job, program] = of(rank);
    if (program != nullptr) {
      return program->streams[static_cast<std::size_t>(what.stream)];
    }
    if (what.comm == CommType::kNone) {
      return "compute";
    }
    return std::string(name_of(
        what.family < 0 ? GroupKind::kPp
                        : compiled_.work.families[static_cast<std::size_t>(what.family)].kind()));
  }

 private:
  /// A rank's job, and its program where the job is an op table.
  std::pair<std::size_t, const OpProgram*> of(std::int32_t rank) const {
    std::size_t j = 0;
    while (rank >= compiled_.jobs[j].first_rank + compiled_.jobs[j].ranks) {
      ++j;
    }
    const StepJob& job = compiled_.jobs[j];
    const auto* table = std::get_if<OpTable>(&job.source->work);
    if (table == nullptr) {
      return {j, nullptr};
    }
    const std::int32_t place = rank - job.first_rank;
    for (const OpProgram& program : table->programs) {
      for (const RankRange& range : program.ranks) {
        if (place >= range.first && place < range.end &&
            (place - range.first) % range.stride == 0) {
          return {j, &program};
        }
      }
    }
    LOCKSTEP_CHECK(false, "a rank with operations has a program");
    return {j, nullptr};
  }

  static void name(std::vector<std::string>& names, const LayerOps::Phase& phase,
                   const std::string& text) {
    for (const std::int32_t op : {phase.compute, phase.comm}) {
      if (op >= 0) {
        names[static_cast<std::size_t>(op)] = text;
      }
    }
  }

  const StepPrograms& compiled_;
  std::vector<std::vector<std::string>> names_;  // by job; empty for op tables
};

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

/// Tells a network of what is to change. Whether it makes the changes by itself: all of them, or
/// none. ERRORS: Error where it takes some only, which would then be made once and a half.
bool announce(NetworkEngine& network, const std::vector<NetworkChange>& changes) {
  std::size_t planned = 0;
  for (const NetworkChange& change : changes) {
    if (network.plan_change(change.when, change.port, change.share_beside_loss, change.loss)) {
      ++planned;
    } else if (planned > 0) {
      throw Error(fmt::format("this engine takes on some of the links' changes but not that of "
                              "link {} to {:g} of its bandwidth",
                              change.port.value / 2, change.share_beside_loss))
          .expected("a share above 1e-6, or the model 'down' for a link that carries nothing")
          .hint("--engine flow takes any share");
    } else {
      return false;
    }
  }
  return planned > 0;
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
    kept.stretches.reset();
    kept.periods.reset();
  }
  kept.programs_for = kept.computations;
  return *kept.programs;
}

/// The first rank of each program of the first job, ascending.
std::vector<std::int32_t> first_ranks(const StepPrograms& compiled) {
  std::vector<std::int32_t> firsts;
  std::vector<char> seen(compiled.work.programs.size(), 0);
  for (std::int32_t rank = 0; rank < compiled.jobs.front().ranks; ++rank) {
    char& known = seen[static_cast<std::size_t>(
        compiled.work.program_of_rank[static_cast<std::size_t>(rank)])];
    if (known == 0) {
      known = 1;
      firsts.push_back(rank);
    }
  }
  return firsts;
}

/// How long `bytes` take from every rank of the first stage to its peer in the second, all at once.
Time stage_to_stage(const LayerTable& table, const Parallelism& parallel, const Topology& topology,
                    const std::vector<NodeId>& nodes, const NetworkFactory& factory,
                    const StragglerPlan& plan, Time send_latency) {
  const auto bytes = Bytes(static_cast<std::int64_t>(table.pp_comm_bytes));
  if (parallel.pp <= 1 || bytes <= Bytes(0)) {
    return {};
  }
  const std::unique_ptr<NetworkEngine> network = factory();
  const std::vector<NetworkChange> changes = plan.changes();
  const bool announced = announce(*network, changes);
  for (const NetworkChange& change : changes) {
    if (change.when == Time() && !announced) {
      network->scale_capacity(change.port, change.share);
    }
  }
  const auto stage = static_cast<std::size_t>(parallel.gpus / parallel.pp);
  for (std::size_t rank = 0; rank < stage; ++rank) {
    FlowSpec flow;
    flow.source = nodes[rank];
    flow.destination = nodes[rank + stage];
    flow.bytes = bytes;
    flow.start = send_latency;
    flow.tag = rank;
    network->start(flow);
  }
  std::vector<NetworkEvent> events;
  Time last;
  for (;;) {
    events.clear();
    const Time now = network->advance(Time::max(), events);
    if (events.empty()) {
      break;
    }
    last = now;
  }
  for (const StuckTransfer& transfer : network->stuck()) {
    const Link& link = topology.links[transfer.link.index()];
    throw Error(fmt::format("the step hangs: what rank {} of stage 0 sends to stage 1 waits for "
                            "link {}-{}, down since {}",
                            transfer.tag, link.a.value, link.b.value, to_text(transfer.since)))
        .hint("give the fault an end (@10ms-20ms), or a time to reroute");
  }
  return last;
}

/// What collectives that were recalled would have put on the ports.
void add_recalled(const Topology& topology, const ReplayResult& run, std::vector<PortUse>& ports) {
  for (std::size_t port = 0; port < run.recalled_bytes.size(); ++port) {
    const Bandwidth rate = topology.class_of(LinkId(port / 2)).rate;
    const Bytes bytes = run.recalled_bytes[port];
    ports[port].bytes += bytes;
    ports[port].busy += Time::seconds(static_cast<double>(bytes.count()) / rate.bytes_per_second());
  }
}

void check_fold(const ReplayResult& folded, const ReplayResult& full, const OpNames& name_of) {
  for (std::size_t rank = 0; rank < full.rank_end.size(); ++rank) {
    if (folded.rank_end[rank] != full.rank_end[rank]) {
      throw Error(fmt::format("rank {} ends at {} ps when folded by symmetry, at {} ps in full",
                              rank, folded.rank_end[rank].count_ps(),
                              full.rank_end[rank].count_ps()))
          .hint("this is a defect of the program; --no-symmetry gives the right answer");
    }
  }
  for (std::size_t op = 0; op < full.first_rank.size(); ++op) {
    const OpTiming &a = folded.first_rank[op], &b = full.first_rank[op];
    if (a.begin != b.begin || a.end != b.end) {
      throw Error(
          fmt::format("rank 0's {} runs from {} to {} ps when folded by symmetry, from {} to {} ps "
                      "in full",
                      name_of(0, static_cast<std::int32_t>(op)), a.begin.count_ps(),
                      a.end.count_ps(), b.begin.count_ps(), b.end.count_ps()))
          .hint("this is a defect of the program; --no-symmetry gives the right answer");
    }
  }
  if (folded.transfers != full.transfers) {
    throw Error(fmt::format("{} transfers when folded by symmetry, {} in full", folded.transfers,
                            full.transfers))
        .hint("this is a defect of the program; --no-symmetry gives the right answer");
  }
}

/// The same of the ports: what they carried, and where links do not change how long they were busy,
/// but for rounding of sums.
void check_ports(const std::vector<PortUse>& folded, const std::vector<PortUse>& full,
                 bool links_change) {
  constexpr double kRounding = 1e-9;
  LOCKSTEP_CHECK(folded.size() == full.size(), "both know every port");
  const auto differ = [](double a, double b, double least) {
    return std::abs(a - b) > least + kRounding * std::max(a, b);
  };
  for (std::size_t port = 0; port < full.size(); ++port) {
    const PortUse &a = folded[port], &b = full[port];
    if (differ(static_cast<double>(a.bytes.count()), static_cast<double>(b.bytes.count()), 1) ||
        (!links_change && differ(static_cast<double>(a.busy.count_ps()),
                                 static_cast<double>(b.busy.count_ps()), 1000))) {
      throw Error(fmt::format("port {} carries {} bytes in {} ps when folded by symmetry, {} bytes "
                              "in {} ps in full",
                              port, a.bytes.count(), a.busy.count_ps(), b.bytes.count(),
                              b.busy.count_ps()))
          .hint("this is a defect of the program; --no-symmetry gives the right answer");
    }
  }
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

  ReplayOptions replay_options;
  replay_options.send_latency = options.send_latency + (strict ? kBusLatency : Time());
  replay_options.reduce_latency = strict ? kReduceLatency : Time();
  replay_options.op_name = [&](std::int32_t rank, std::int32_t op) { return names(rank, op); };
  replay_options.show_progress = options.show_progress;
  replay_options.tensor_schedules = options.tensor_schedules;
  replay_options.recall = options.recall;
  replay_options.interference = options.interference;
  if (!options.interference.measured.empty()) {
    replay_options.channels =
        CollectiveChannels(compiled.work, nodes, topology, schedules, options.tensor_schedules);
  }
  if (!options.traffic_classes.empty()) {
    replay_options.recall.reset();  // one class may wait for all of another
    replay_options.traffic_class = [&](GroupKind kind, CommType op, std::int32_t rank) {
      const auto after = std::ranges::upper_bound(compiled.jobs, rank, {}, &StepJob::first_rank);
      const auto job = static_cast<std::int32_t>(after - compiled.jobs.begin()) - 1;
      return options.traffic_classes.of(kind, op, job);
    };
  }
  replay_options.limits = options.limits;
  std::optional<StepTimeline> recorder;
  if (options.timeline != nullptr) {
    recorder.emplace(compiled.work, replay_options.op_name,
                     [&](std::int32_t rank, std::int32_t op) { return names.track(rank, op); });
  }
  std::optional<StepTrace> trace;
  if (options.trace != nullptr) {
    const StepJob& first = compiled.jobs.front();
    const auto* table = std::get_if<OpTable>(&first.source->work);
    if (table == nullptr) {
      throw Error(
          "a table of layers has no microbatches and stages, which the columns of a trace need")
          .hint("a trace of this step can be written as .json or .json.gz");
    }
    Parallelism parallel = first.source->parallel;
    parallel.gpus = first.ranks;
    trace.emplace(*table, parallel,
                  options.trace_first_workers ? TraceWorkers::kFirst : TraceWorkers::kAll);
    if (options.meta != nullptr) {
      *options.meta = trace->meta();
    }
  }
  const StragglerContext context = straggler_context(compiled.work, nodes, topology, options);
  const StragglerPlan plan(options.stragglers, context);
  replay_options.changes = plan.changes();
  if (!replay_options.changes.empty() || !plan.faults().empty()) {
    replay_options.recall.reset();  // links are not what they were
  }
  if (!plan.empty()) {
    replay_options.duration = [&](std::int32_t rank, std::int32_t op, const ProgramOp& what,
                                  Time begin) { return plan.duration(rank, op, what, begin); };
    if (plan.steady()) {
      replay_options.steady_speeds = plan.colours();
    }
  }
  if (plan.uneven()) {
    replay_options.recall.reset();  // no two of them are alike
    replay_options.loads = [&](const ProgramOp& what, std::int32_t group) {
      return plan.loads_of(what, group);
    };
  }
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
  std::shared_ptr<StepFold> fold;
  std::optional<StepFolder> folder;
  if (options.fold && plan.folds()) {
    if (options.kept != nullptr) {
      options.kept->trim();
    }
    folder.emplace(
        StepPlace{compiled.work, nodes, topology, *options.fold, schedules, replay_options},
        plan.colours(), options.kept, options.shared);
    fold = folder->fold(0);
    if (fold) {
      folder->fold_ahead();
    }
  }
  const StepFold* final_fold = fold.get();
  std::shared_ptr<StepFold> last_phase;
  std::optional<StepRecorder> kept;
  if (options.explain || options.detail != nullptr) {
    if (fold && folder->phases() > 1) {
      last_phase = folder->fold(folder->phases() - 1);
      final_fold = last_phase.get();
    }
    kept.emplace(compiled.work, final_fold);
  }
  // What some ranks hold over the step; by rank, empty for the others.
  const std::vector<std::int32_t> holders =
      options.memory ? first_ranks(compiled) : std::vector<std::int32_t>();
  std::vector<std::vector<OpTiming>> held(holders.empty() ? 0 : nodes.size());
  for (const std::int32_t rank : holders) {
    held[static_cast<std::size_t>(rank)].resize(compiled.work.program(rank).ops().size());
  }
  if (recorder || trace || kept || !holders.empty()) {
    const auto times_of = [&](std::int32_t rank) {
      std::vector<OpTiming>* const times =
          held.empty() ? nullptr : &held[static_cast<std::size_t>(rank)];
      return times != nullptr && !times->empty() ? times : nullptr;
    };
    const auto drawn = [&](std::int32_t rank) { return recorder && rank < options.timeline_ranks; };
    const auto in_trace = [&](std::int32_t rank) {
      return trace && rank < compiled.jobs.front().ranks && trace->records(rank);
    };
    replay_options.traced = [&, drawn, in_trace, times_of](std::int32_t rank) {
      return (kept && kept->records(rank)) || times_of(rank) != nullptr || drawn(rank) ||
             in_trace(rank);
    };
    replay_options.on_op = [&, drawn, in_trace, times_of](std::int32_t rank, std::int32_t op,
                                                          const OpTiming& timing) {
      if (kept && kept->records(rank)) {
        kept->record(rank, op, timing);
      }
      if (std::vector<OpTiming>* const times = times_of(rank)) {
        (*times)[static_cast<std::size_t>(op)] = timing;
      }
      if (drawn(rank)) {
        recorder->record(rank, op, timing);
      }
      if (in_trace(rank)) {
        trace->record(rank, compiled.work.program(rank).ops()[static_cast<std::size_t>(op)],
                      timing);
      }
    };
  }
  ReplayResult run;
  std::vector<PortUse> ports;
  if (fold) {
    FoldedResult folded = replay_folded(
        *folder, fold, options.verify_symmetry || (options.with_ports && options.kept == nullptr));
    run = std::move(folded.replay);
    ports = std::move(folded.ports);
    if (options.verify_symmetry) {
      replay_options.traced = nullptr;
      replay_options.on_op = nullptr;
      const std::unique_ptr<NetworkEngine> network = network_with_faults();
      check_fold(run, in_full(*network), names);
      check_ports(ports, network->port_use(), !replay_options.changes.empty());
    }
  } else {
    const std::unique_ptr<NetworkEngine> network = network_with_faults();
    if (announce(*network, replay_options.changes)) {
      replay_options.changes.clear();
    }
    run = in_full(*network);
    ports = network->port_use();
    add_recalled(topology, run, ports);
  }

  if (trace) {
    trace->add_rows(options.step, *options.trace);
  }
  if (recorder) {
    *options.timeline = recorder->take();
  }
  const StepJob& job = compiled.jobs.front();
  StepResult result;
  result.parallel = job.source->parallel;
  result.parallel.gpus = job.ranks;
  result.gpus = compiled.work.ranks();
  result.first_rank_end = *std::ranges::min_element(run.rank_end);
  result.last_rank_end = run.end;
  result.ports = std::move(ports);
  result.flows = run.transfers;
  result.replay_work = run.work;
  if (const auto& measured = options.interference.measured;
      !measured.empty() && run.most_blocks > measured.back().blocks) {
    result.warnings.push_back(fmt::format(
        "computations run beside up to {} thread blocks of collectives; the interference was "
        "measured up to {} and is taken from there",
        run.most_blocks, measured.back().blocks));
  }
  result.recalled_flows = run.recalled;
  result.error = run.error;
  if (kept) {
    std::optional<CriticalPath> path = kept->critical();
    if (options.explain && !path) {
      result.warnings.push_back("too many operations to keep: no critical path");
    }
    if (options.detail != nullptr) {
      *options.detail = kept->detail(
          replay_options.op_name,
          [&](std::int32_t rank, std::int32_t op) { return names.track(rank, op); }, path);
    }
    if (options.explain) {
      result.critical = std::move(path);
    }
    if (result.critical && options.routes) {
      result.critical->by_link = critical_links(compiled.work, nodes, topology, *options.routes,
                                                schedules, *result.critical);
    }
  }
  for (const std::int32_t rank : holders) {
    const std::int32_t stage = context.place(GroupKind::kPp, rank);
    result.memory.push_back(memory_timeline(
        compiled.work.program(rank), held[static_cast<std::size_t>(rank)], options.memory(stage)));
    result.memory.back().rank = rank;
    result.memory.back().stage = stage;
  }
  for (const StepJob& each : compiled.jobs) {
    const auto first = run.rank_end.begin() + each.first_rank;
    result.jobs.push_back({each.source->name, each.first_rank, each.ranks,
                           *std::max_element(first, first + each.ranks)});
  }
  const Program& program = compiled.work.program(0);
  for (std::size_t i = 0; i < program.ops().size(); ++i) {
    const bool computes = program.ops()[i].comm == CommType::kNone;
    result.compute += computes ? run.first_rank[i].end - run.first_rank[i].begin : Time();
  }
  result.total = strict ? run.rank_end.front() : run.end;
  Time job_end = compiled.jobs.size() > 1 ? result.jobs.front().end : result.total;
  result.skew = strict ? Time() : job_end - run.rank_end.front();
  if (const auto* table = std::get_if<LayerTable>(&job.source->work)) {
    if (!strict) {
      settle_pipeline(result.parallel, options.chunks_per_stage, result.warnings);
    }
    report_layers(*table, job.layers, program, compiled.work.families, run.first_rank, strict,
                  result);
    result.bubble = pipeline_bubble(result);
    if (!strict) {
      const Time hop = stage_to_stage(*table, result.parallel, topology, nodes, network_with_faults,
                                      plan, replay_options.send_latency);
      const Time pp =
          Time::seconds(hop.seconds() * 2.0 * static_cast<double>(result.parallel.vpp) *
                        static_cast<double>(result.parallel.ga) * (1 - options.pp_overlap));
      result.exposed_by_group[static_cast<std::size_t>(GroupKind::kPp)] = pp;
      result.total += result.bubble + pp;
      job_end += pp;
    }
    result.exposed = job_end - result.compute;
    if (table->policy != kSimulatedPolicy) {
      result.warnings.push_back(fmt::format("policy {} runs by the rules of {}",
                                            printable(table->policy), kSimulatedPolicy));
    }
  } else {
    const Exposure exposure = exposure_of(program, compiled.work.families, run.first_rank);
    result.exposed_by_group = exposure.by_group;
    result.exposed = job_end - exposure.compute;
    result.compute = exposure.compute;
  }
  return result;
}

}  // namespace lockstep
