#include "simulator/replay/lone_collective.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "simulator/network/flow/flow_engine.h"
#include "simulator/replay/flow_graph_run.h"
#include "simulator/replay/network_changes.h"
#include "simulator/replay/recurrence_run.h"
#include "simulator/replay/single_ways.h"
#include "simulator/replay/steady_end.h"
#include "simulator/replay/switch_node.h"
#include "simulator/replay/symmetry.h"

namespace lockstep {
namespace {

/// A program that enters the collective after `lead`.
Program program_of(CommType op, Bytes bytes, Time lead) {
  Program program({StreamOrder::kProgram});
  std::vector<std::int32_t> before;
  if (lead > Time()) {  // a computation may idle, a collective starts at once
    ProgramOp idle;
    idle.lead = lead;
    before.push_back(program.add(idle, {}));
  }
  ProgramOp entry;
  entry.comm = op;
  entry.bytes = bytes;
  entry.family = 0;
  program.add(entry, before);
  program.finish();
  return program;
}

std::int64_t transfer_count(const FlowGraph& graph) {
  std::int64_t count = 0;
  for (const FlowGraph::Slot& slot : graph.slots) {
    count += slot.count * slot.copies;
  }
  return count;
}

/// Runs the whole graph, every transfer, and compares.
void verify(const FlowGraph& graph, const std::optional<Partition>& partition,
            const FlowGraphTimes& times) {
  const FlowGraphTimes full = run_flow_graph(graph, /*fast_forward=*/false);
  for (std::size_t i = 0; i < graph.slots.size(); ++i) {
    const std::size_t of = partition ? static_cast<std::size_t>(partition->slot_class[i]) : i;
    if (times.sent[of] != full.sent[i] || times.delivered[of] != full.delivered[i]) {
      throw Error(
          fmt::format("slot {} ends at {} ps with symmetry and fast-forward, at {} ps without", i,
                      times.delivered[of].count_ps(), full.delivered[i].count_ps()))
          .hint("this is a defect of the program; --no-symmetry gives the right answer");
    }
  }
}

}  // namespace

LoneCollectiveResult run_lone_collective(const LoneCollective& collective, const Topology& topology,
                                         NetworkEngine& network) {
  const Schedule& schedule = *collective.schedule;
  const std::int32_t n = schedule.ranks;
  LOCKSTEP_CHECK(std::ssize(collective.nodes) == n, "a rank runs on a GPU");
  RankPrograms work;
  std::vector<std::int32_t> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  work.families.emplace_back(GroupKind::kWorld, std::vector<std::vector<std::int32_t>>{all}, n);
  if (collective.entry.empty()) {
    work.programs.push_back(program_of(schedule.op, collective.bytes, Time()));
    work.program_of_rank.assign(static_cast<std::size_t>(n), 0);
  } else {
    LOCKSTEP_CHECK(std::ssize(collective.entry) == n, "every rank enters");
    for (const Time entry : collective.entry) {
      work.programs.push_back(program_of(schedule.op, collective.bytes, entry));
    }
    work.program_of_rank = all;
  }
  ReplayOptions options;
  options.send_latency = collective.send_latency;
  options.reduce_latency = collective.reduce_latency;
  options.receive_latency = collective.receive_latency;
  options.op_name = [](std::int32_t, std::int32_t) { return "the collective"; };
  for (const LinkFault& fault : collective.faults) {
    network.add_fault(fault);
  }
  if (!announce(network, collective.changes)) {
    options.changes = collective.changes;
  }
  const ReplayResult run = replay(
      work, collective.nodes, topology, network,
      [&](CommType, Bytes, const GroupShape&) { return collective.schedule; }, options);
  return {run.end,
          Time(),
          run.transfers,
          run.transfers,
          std::ssize(schedule.slots),
          std::ssize(schedule.slots)};
}

bool meet_by_packets(const LoneCollective& collective, const Topology& topology,
                     const FlowOptions& flow) {
  const Schedule& schedule = *collective.schedule;
  if (!flow.fresh_ports || flow.routes.spray || !schedule.switches.empty()) {
    return false;  // those of switches are the NVLinks of a server
  }
  std::vector<Way> ways;
  for (const Slot& slot : schedule.slots) {
    ways.push_back({collective.nodes[static_cast<std::size_t>(slot.source)],
                    collective.nodes[static_cast<std::size_t>(slot.destination)], slot.channel});
  }
  return !schedule.relays.empty() || !single_ways(topology, flow.routes, ways);
}

LoneCollectiveResult run_on_flow_engine(LoneCollective collective, const Topology& topology,
                                        const FlowOptions& flow,
                                        const LoneCollectiveOptions& options) {
  const Schedule& schedule = *collective.schedule;  // until there is a graph
  if (!flow.is_steady() || !collective.is_steady() || !schedule.chunk_sizes.empty()) {
    FlowEngine engine(topology, flow);
    if (meet_by_packets(collective, topology, flow)) {
      engine.meet_by_packets();
    }
    return run_lone_collective(collective, topology, engine);
  }
  std::vector<NodeId> nodes = collective.nodes;
  const Adjacency adjacency(topology);
  for (const SwitchPlace& place : schedule.switches) {
    nodes.push_back(switch_node(topology, adjacency,
                                collective.nodes[static_cast<std::size_t>(place.near)], place));
  }
  FlowGraphBuilder builder(topology, flow);
  FlowGraphBuilder::Setting setting;
  setting.nodes = nodes;
  setting.entry = collective.entry;
  setting.send_latency = collective.send_latency;
  builder.add(schedule, setting);
  collective.schedule.reset();
  FlowGraph graph = builder.finish();
  LoneCollectiveResult result;
  result.slots = result.classes = std::ssize(graph.slots);
  std::optional<Partition> partition;
  if (options.symmetry) {
    partition = find_symmetry(graph);
  }
  std::optional<FlowGraph> folded;
  if (partition) {
    result.classes = partition->slot_classes;
    folded = fold(graph, *partition);
  }
  if (options.error_budget > 0 && !options.verify) {
    const FlowGraph& what = folded ? *folded : graph;
    if (const auto steady =
            run_as_recurrence(what) ? std::nullopt : steady_end(what, options.error_budget)) {
      result.end = steady->end;
      result.error = steady->error;
      result.transfers = transfer_count(graph);
      result.simulated = steady->simulated;
      return result;
    }
  }
  FlowGraphTimes times;
  if (folded) {
    times = run_flow_graph(std::move(*folded), options.fast_forward);
  } else if (options.verify) {
    times = run_flow_graph(graph, options.fast_forward);
  } else {
    times = run_flow_graph(std::move(graph), options.fast_forward);
  }
  result.transfers = times.transfers;
  result.simulated = times.simulated;
  for (const Time entry : collective.entry) {
    result.end = std::max(result.end, entry);
  }
  for (std::size_t i = 0; i < times.sent.size(); ++i) {
    result.end = std::max({result.end, times.sent[i], times.delivered[i]});
  }
  if (options.verify) {
    verify(graph, partition, times);
  }
  return result;
}

GroupShape shape_of_nodes(const Topology& topology, const std::vector<NodeId>& nodes) {
  std::vector<std::int32_t> servers;
  servers.reserve(nodes.size());
  for (const NodeId node : nodes) {
    servers.push_back(topology.nodes[node.index()].server);
  }
  return group_shape(servers);
}

}  // namespace lockstep
