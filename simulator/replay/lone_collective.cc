#include "simulator/replay/lone_collective.h"

#include <numeric>
#include <utility>

#include "base/error.h"
#include "simulator/replay/replay.h"

namespace lockstep {
namespace {

/// A program that enters the collective after `lead`.
Program program_of(CommType op, Bytes bytes, Time lead) {
  Program program({StreamOrder::kProgram});
  ProgramOp entry;
  entry.lead = lead;
  entry.comm = op;
  entry.bytes = bytes;
  entry.family = 0;
  program.add(entry, {});
  program.finish();
  return program;
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
  options.op_name = [](std::int32_t, std::int32_t) { return "the collective"; };
  const ReplayResult run = replay(
      work, collective.nodes, topology, network,
      [&](CommType, Bytes, const GroupShape&) { return collective.schedule; }, options);
  return {run.end, run.transfers};
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
