#include "simulator/replay/together.h"

#include <utility>

namespace lockstep {

Time time_together(const RankPrograms& work, const ProgramOp& op,
                   std::span<const std::int32_t> ranks, const std::vector<NodeId>& nodes,
                   const Topology& topology, NetworkEngine& network,
                   const ScheduleSource& schedules, const ReplayOptions& options) {
  RankPrograms alone;
  Program idle({});
  idle.finish();
  alone.programs.push_back(std::move(idle));
  Program program({StreamOrder::kProgram});
  ProgramOp entry;
  entry.comm = op.comm;
  entry.bytes = op.bytes;
  entry.family = op.family;
  entry.returns = op.returns;
  program.add(entry, {});
  program.finish();
  alone.programs.push_back(std::move(program));
  alone.families = work.families;
  alone.program_of_rank.assign(static_cast<std::size_t>(work.ranks()), 0);
  for (const std::int32_t rank : ranks) {
    alone.program_of_rank[static_cast<std::size_t>(rank)] = 1;
  }
  ReplayOptions same;
  same.send_latency = options.send_latency;
  same.reduce_latency = options.reduce_latency;
  same.receive_latency = options.receive_latency;
  same.tensor_schedules = options.tensor_schedules;
  same.traffic_class = options.traffic_class;
  same.op_name = [](std::int32_t, std::int32_t) { return "a collective"; };
  return replay(alone, nodes, topology, network, schedules, same).end;
}

}  // namespace lockstep
