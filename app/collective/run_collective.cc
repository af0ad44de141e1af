#include "app/collective/run_collective.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/collective/collective_plan.h"
#include "app/collective/placement.h"
#include "app/compare/run_compare.h"
#include "app/flag_value.h"
#include "app/other_gpus.h"
#include "app/real_rates.h"
#include "app/simulate/analytic_topology.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "base/stop_signal.h"
#include "base/text.h"
#include "simulator/collectives/split.h"
#include "simulator/network/analytic/collective_time.h"
#include "simulator/network/checked_network.h"
#include "simulator/network/flow/flow_engine.h"
#include "simulator/network/packet_engine.h"
#include "simulator/replay/declared_fold.h"
#include "simulator/replay/fabric_of.h"
#include "simulator/replay/lone_collective.h"
#include "simulator/replay/simai_latency.h"
#include "simulator/replay/straggler_plan.h"
#include "topologies/topology_file.h"

namespace lockstep {
namespace {

constexpr Time kDefaultSendLatency = Time::us(6);
constexpr std::uint64_t kMostSeeds = 4294944442;  // of ns-3

CommType parse_op(const std::string& text) {
  std::string name = to_lower(text);
  std::erase_if(name, [](char c) { return c == '_' || c == '-'; });
  const auto op = comm_type_named(name);
  if (!op || *op == CommType::kNone) {
    throw Error(fmt::format("unknown collective '{}'", printable(text)))
        .field("--op")
        .expected(
            "allreduce, allgather, reducescatter, alltoall, broadcast, reduce, sendrecv or "
            "barrier");
  }
  return *op;
}

/// "S" or "FROM:TO", by factors of 2.
std::vector<Bytes> parse_sizes(const char* flag, const std::string& text) {
  const auto parts = split(text, ':');
  if (parts.size() > 2) {
    throw Error(fmt::format("'{}' is no range of sizes", printable(text)))
        .field(flag)
        .expected("a size such as 1GiB, or FROM:TO such as 8B:16GiB");
  }
  const Bytes first = flag_value(flag, parts.front(), parse_bytes);
  const Bytes last = flag_value(flag, parts.back(), parse_bytes);
  if (first < Bytes(1) || last < first) {
    throw Error(fmt::format("'{}' is no range of sizes", printable(text)))
        .field(flag)
        .expected("at least 1 byte, and FROM not above TO");
  }
  std::vector<Bytes> sizes;
  for (Bytes size = first; size <= last; size = size * 2) {
    sizes.push_back(size);
  }
  return sizes;
}

/// The sizes of the sweep; with --split, its size, and the split goes into the plan.
std::vector<Bytes> take_sizes(const CollectiveOptions& options, PlanSetting& plan) {
  if (plan.op == CommType::kBarrier) {
    return {Bytes(0)};
  }
  if (!options.sizes.empty()) {
    return options.sizes;
  }
  if (options.split.empty()) {
    return options.sweep.empty() ? parse_sizes("--size", options.size)
                                 : parse_sizes("--sweep", options.sweep);
  }
  Split split = read_split(options.split, plan.op, static_cast<std::size_t>(plan.shape.ranks));
  plan.sizes = std::move(split.sizes);
  return {split.bytes};
}

/// Everything about a run that does not change with the size.
struct Setting {
  const CollectiveOptions& options;
  PlanSetting plan;
  const Topology& topology;
  std::vector<NodeId> nodes;
  std::vector<Time> entry;             // with --jitter
  std::vector<NetworkChange> changes;  // of --straggler
  std::vector<LinkFault> faults;
  FlowOptions flow;
  AnalyticOptions analytic;
  double error_budget = 0;
};

AnalyticOptions analytic_options(const CollectiveOptions& options, const Topology& topology,
                                 std::span<const NodeId> gpus) {
  AnalyticOptions analytic;
  take_from_topology(topology, gpus, analytic);
  analytic.flavour = parse_flavour(options.flavour);
  analytic.gpus = topology.count(NodeKind::kGpu);
  if (!options.nvlink.empty()) {
    analytic.nvlink = flag_value("--nvlink", options.nvlink, parse_bandwidth);
  }
  if (!options.nic.empty()) {
    analytic.nic = flag_value("--nic", options.nic, parse_bandwidth);
  }
  return analytic;
}

std::vector<Time> jittered(const CollectiveOptions& options, std::size_t ranks) {
  std::vector<Time> entry;
  const Time most =
      options.jitter.empty() ? Time() : flag_value("--jitter", options.jitter, parse_time);
  if (most > Time()) {
    Rng rng(options.seed, "collective/jitter");
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      entry.push_back(Time::ps(rng.between(0, most.count_ps())));
    }
  }
  return entry;
}

/// The packet engine for one collective; it is told how soon a transfer may start after what it
/// waits for.
std::unique_ptr<NetworkEngine> packet_engine(const Setting& setting, const Schedule& schedule,
                                             Time send_latency) {
  std::vector<std::string> told;  // once, by run_collective()
  PacketOptions packet =
      packet_options(setting.options, setting.options.flavour == "simai", setting.topology, told);
  packet.seed = setting.options.seed % kMostSeeds + 1;
  packet.lookahead = send_latency;
  if (setting.options.no_fast_forward) {
    packet.fabric.try_emplace("FastForward", "false");
  }
  for (const Slot& slot : schedule.slots) {
    packet.lookahead = std::min(packet.lookahead, schedule.start_latency(slot, send_latency));
  }
  return std::make_unique<PacketEngine>(setting.topology, packet);
}

/// A run with --paranoid: every transfer, watched.
CollectiveTiming checked(const LoneCollective& collective, const Topology& topology,
                         std::unique_ptr<NetworkEngine> engine) {
  CheckedNetwork network(std::move(engine), topology);
  const LoneCollectiveResult result = run_lone_collective(collective, topology, network);
  (void)network.port_use();
  return {result.end, result.error, result.transfers, network.packet_statistics()};
}

/// The time of one collective in an engine that carries out its transfers: the one place where it
/// is worked out.
CollectiveTiming network_time(const Setting& setting, const CollectivePlan& plan, Bytes bytes,
                              const std::string& engine) {
  LoneCollective collective;
  collective.bytes = bytes;
  collective.nodes = setting.nodes;
  collective.entry = setting.entry;
  collective.changes = setting.changes;
  collective.faults = setting.faults;
  const std::string& latency = setting.options.send_latency;
  collective.send_latency =
      latency.empty() ? kDefaultSendLatency : flag_value("--send-latency", latency, parse_time);
  if (setting.options.flavour == "simai") {
    collective.send_latency += kSimaiBusLatency;
  }
  if (engine == "packet") {
    if (setting.options.flavour == "simai") {
      collective.reduce_latency = kSimaiReduceLatency;
      collective.receive_latency = kSimaiBusLatency;
    }
    collective.schedule = plan.schedule();
    auto network = packet_engine(setting, *collective.schedule, collective.send_latency);
    if (setting.options.paranoid) {
      return checked(collective, setting.topology, std::move(network));
    }
    const LoneCollectiveResult result = run_lone_collective(collective, setting.topology, *network);
    // A report of the engine's writes the file of --samples, too.
    return {result.end, result.error, result.transfers, network->packet_statistics()};
  }
  const LoneCollectiveOptions how{.symmetry = !setting.options.no_symmetry,
                                  .fast_forward = !setting.options.no_fast_forward,
                                  .error_budget = setting.error_budget,
                                  .verify = setting.options.verify_symmetry};
  const auto sure = [&](Time end) {
    if (setting.options.paranoid) {
      collective.schedule = plan.schedule();
      auto network = std::make_unique<FlowEngine>(setting.topology, setting.flow);
      network->certify();
      if (meet_by_packets(collective, setting.topology, setting.flow)) {
        network->meet_by_packets();
      }
      const Time full = checked(collective, setting.topology, std::move(network)).time;
      LOCKSTEP_CHECK(full == end || setting.error_budget > 0,
                     fmt::format("every transfer on its own: {} ps, the quick way: {} ps",
                                 full.count_ps(), end.count_ps()));
    }
    return end;
  };
  if (plan.leaving) {
    if (const auto result = run_declared(collective, plan.leaving, plan.schedule, setting.topology,
                                         setting.flow, how)) {
      return {sure(result->end), result->error, result->transfers, {}};
    }
  }
  collective.schedule = plan.schedule();
  LoneCollective whole = setting.options.paranoid ? collective : std::move(collective);
  const LoneCollectiveResult result =
      run_on_flow_engine(std::move(whole), setting.topology, setting.flow, how);
  return {sure(result.end), result.error, result.transfers, {}};
}

/// What --straggler does to links. Ranks of a lone collective compute nothing.
void take_stragglers(Setting& setting) {
  const CollectiveOptions& options = setting.options;
  std::vector<Straggler> stragglers;
  std::ranges::transform(options.stragglers, std::back_inserter(stragglers), Straggler::parse);
  std::vector<std::int32_t> all(setting.nodes.size());
  std::iota(all.begin(), all.end(), 0);
  const std::vector<CommFamily> families = {
      {GroupKind::kWorld, {all}, static_cast<std::int32_t>(all.size())}};
  StragglerContext context;
  context.families = families;
  context.node_of_rank = setting.nodes;
  for (const NodeId node : setting.nodes) {
    context.server_of_rank.push_back(setting.topology.nodes[node.index()].server);
  }
  context.topology = &setting.topology;
  context.seed = options.seed;
  const StragglerPlan plan(stragglers, context);
  if (plan.slows_computations()) {
    throw Error("a collective alone has no computations that could be slow")
        .field("--straggler")
        .expected("link, switch, nic, rail, loss, background or down")
        .hint("--jitter lets ranks enter late");
  }
  setting.changes = plan.changes();
  setting.faults = plan.faults();
}

/// What another flag, or the operation, leaves no meaning.
void check_of_operation(const CollectiveOptions& options, CommType op) {
  if (options.root != 0 && op != CommType::kBroadcast && op != CommType::kReduce) {
    throw Error(fmt::format("{} has no root", name_of(op)))
        .field("--root")
        .expected("--op broadcast or reduce beside it");
  }
  if (!options.algorithm_file.empty() && !options.algorithm.empty()) {
    throw Error("the file is the algorithm").field("--algorithm").expected("one of the two flags");
  }
}

/// What is typed and cannot matter to this operation.
void note_of_operation(const CollectiveOptions& options, CommType op,
                       std::vector<std::string>& warnings) {
  if (op == CommType::kBarrier && (options.size != CollectiveOptions().size ||
                                   !options.sweep.empty() || !options.split.empty())) {
    warnings.emplace_back("a barrier has no bytes: sizes change nothing");
  }
  if (!options.algorithm.empty() && algorithm_name(options, op).empty()) {
    warnings.push_back(
        fmt::format("--algorithm {} changes nothing: this is {}", options.algorithm, name_of(op)));
  }
}

/// What changes engines that were not asked.
void check_of_engines(const CollectiveOptions& options) {
  const auto need = [&](const char* flag, bool given, const char* engine, const char* why) {
    if (given && std::ranges::find(options.engines, engine) == options.engines.end()) {
      throw Error(why).field(flag).hint(fmt::format("use --engine {}", engine));
    }
  };
  need("--nvlink", !options.nvlink.empty(), "analytic", "links are as the topology says");
  need("--nic", !options.nic.empty(), "analytic", "links are as the topology says");
  need("--error-budget", !options.error_budget.empty(), "flow", "there would be no error anyway");
  need("--verify-symmetry", options.verify_symmetry, "flow", "nothing would be folded or compared");
  if (std::ranges::find(options.engines, "packet") == options.engines.end()) {
    need("--paranoid", options.paranoid, "flow", "formulas have no transfers to check");
  }
}

/// What analytic formulas cannot heed: refused where they are alone, warned about beside others.
void check_analytic(const CollectiveOptions& options, std::vector<std::string>& warnings) {
  if (std::ranges::find(options.engines, "analytic") == options.engines.end()) {
    return;
  }
  std::vector<std::string> flags = flags_beside_formulas(options);
  if (!options.algorithm_file.empty()) {
    flags.emplace_back("--algorithm-file");
  }
  if (!options.split.empty()) {
    flags.emplace_back("--split");
  }
  if (!options.stragglers.empty()) {
    flags.emplace_back("--straggler");
  }
  if (options.engines.size() == 1) {
    std::ranges::move(unheeded_by_formulas(flags), std::back_inserter(warnings));
  } else if (!flags.empty()) {
    warnings.push_back(
        fmt::format("the analytic engine's column does not heed {}", fmt::join(flags, ", ")));
  }
}

CollectiveTiming analytic_time(const Setting& setting, Bytes bytes) {
  if (!setting.entry.empty()) {
    throw Error("the analytic engine has a formula, no ranks that could be late")
        .field("--jitter")
        .hint("use --engine flow");
  }
  if (setting.plan.op == CommType::kBarrier) {
    throw Error("the analytic engine has no formula for a barrier").hint("use --engine flow");
  }
  const std::int64_t n = setting.plan.shape.ranks;
  return {collective_time({setting.plan.op, GroupKind::kTp, n, bytes}, {.gpus = n, .tp = n},
                          setting.analytic),
          Time(),
          0,
          {}};
}

/// One size on every engine.
CollectivePoint run_size(const Setting& setting, Bytes bytes) {
  CollectivePoint point;
  point.bytes = bytes;
  std::optional<CollectivePlan> plan;
  for (const std::string& engine : setting.options.engines) {
    if (engine == "analytic") {
      point.timings.push_back(analytic_time(setting, bytes));
      continue;
    }
    if (!plan) {
      plan = plan_collective(setting.options, setting.plan, bytes);
      point.algorithm = plan->algorithm;
      point.protocol = plan->protocol;
      point.channels = plan->channels;
    }
    point.timings.push_back(network_time(setting, *plan, bytes, engine));
  }
  return point;
}

}  // namespace

CollectiveSweep run_collective(const CollectiveOptions& typed) {
  CollectiveOptions options = typed;
  if (std::ranges::find(options.engines, "all") != options.engines.end()) {
    options.engines = {"analytic", "flow", "packet"};
  }
  CollectiveSweep sweep;
  sweep.op = parse_op(options.op);
  const Topology topology = topology_from(options.topology, &sweep.warnings);
  check_of_operation(options, sweep.op);
  note_of_operation(options, sweep.op, sweep.warnings);
  check_of_engines(options);
  check_analytic(options, sweep.warnings);
  const auto asked = [&](const char* engine) {
    return std::ranges::find(options.engines, engine) != options.engines.end();
  };
  if (options.no_symmetry && !asked("flow")) {
    sweep.warnings.emplace_back("--no-symmetry changes nothing without the flow engine");
  }
  if (options.no_fast_forward && !asked("flow") && !asked("packet")) {
    sweep.warnings.emplace_back("--no-fast-forward changes nothing in the analytic engine");
  }
  if (options.nvls && options.engines != std::vector<std::string>{"analytic"}) {
    sweep.warnings.emplace_back("--nvls changes nothing here: --algorithm nvls names it");
  }
  if (std::string note = taken_for_hopper(topology);
      !note.empty() && options.engines != std::vector<std::string>{"analytic"}) {
    sweep.warnings.push_back(std::move(note));
  }
  Setting setting{options, {}, topology, {}, {}, {}, {}, {}, {}};
  setting.plan.op = sweep.op;
  setting.nodes = place_ranks(topology, options.placement, options.gpus, options.seed);
  setting.plan.shape = shape_of_nodes(topology, setting.nodes);
  setting.plan.fabric = fabric_of(topology, setting.nodes);
  setting.plan.ports = options.rail_affinity ? nic_ports(topology, setting.nodes) : 1;
  if (!options.algorithm_file.empty()) {
    setting.plan.user = read_algorithm_file(options.algorithm_file);
  }
  setting.entry = jittered(options, setting.nodes.size());
  take_stragglers(setting);
  setting.flow = flow_options(options, options.flavour == "simai");
  setting.flow.seed = options.seed;
  setting.plan.rates = real_rates(options, options.flavour == "simai");
  if (asked("packet")) {
    refuse_real_rates(options);
  }
  if (setting.plan.rates) {
    take_real_rates(*setting.plan.rates, setting.flow);
  }
  if (asked("flow")) {
    add_transport(options, options.flavour == "simai", topology, options.seed % kMostSeeds + 1,
                  setting.flow, sweep.warnings);
  }
  if (asked("packet")) {
    std::vector<std::string> told;
    const PacketOptions packet =
        packet_options(options, options.flavour == "simai", topology, told);
    tell_unmapped_rates(packet, topology, told);
    for (std::string& text : told) {
      if (std::ranges::find(sweep.warnings, text) == sweep.warnings.end()) {
        sweep.warnings.push_back(std::move(text));
      }
    }
  }
  setting.analytic = analytic_options(options, topology, setting.nodes);
  setting.error_budget = error_budget(options.error_budget);
  sweep.ranks = setting.plan.shape.ranks;
  sweep.servers = *std::ranges::max_element(setting.plan.shape.server) + 1;
  sweep.topology = options.topology;
  sweep.flavour = options.flavour;
  sweep.placement = options.placement;
  sweep.engines = options.engines;
  const std::vector<Bytes> sizes = take_sizes(options, setting.plan);
  if (!options.samples.empty() &&
      (sizes.size() > 1 || std::ranges::find(options.engines, "packet") == options.engines.end())) {
    throw Error("samples are of one run of the packet engine")
        .field("--samples")
        .hint("use --engine packet and one --size");
  }
  sweep.points.resize(sizes.size());
  std::vector<char> done(sizes.size());  // not bool: threads write at the same time
  try {
    // Large sizes take longest, so they begin.
    for_each_in_parallel(sizes.size(), options.threads, [&](std::size_t i) {
      throw_if_stopped();
      const std::size_t point = sizes.size() - 1 - i;
      sweep.points[point] = run_size(setting, sizes[point]);
      done[point] = 1;
    });
  } catch (const Interrupted&) {
    std::vector<CollectivePoint> whole;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (done[i] != 0) {
        whole.push_back(std::move(sweep.points[i]));
      }
    }
    if (whole.empty()) {
      throw;
    }
    sweep.missing = sizes.size() - whole.size();
    sweep.points = std::move(whole);
  }
  return sweep;
}

}  // namespace lockstep
