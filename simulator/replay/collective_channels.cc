#include "simulator/replay/collective_channels.h"

#include <algorithm>
#include <memory>

namespace lockstep {

std::int32_t CollectiveChannels::operator()(std::int32_t rank, const ProgramOp& op) {
  const CommFamily& family = work_.families[static_cast<std::size_t>(op.family)];
  const std::int32_t group = family.group_of(rank);
  const auto [known, is_new] = known_.try_emplace({op.family, group, op.comm, op.bytes}, 0);
  if (is_new) {
    const auto& members = family.groups()[static_cast<std::size_t>(group)];
    std::vector<std::int32_t> servers;
    for (const std::int32_t member : members) {
      const NodeId node = node_of_rank_[static_cast<std::size_t>(member)];
      servers.push_back(topology_.nodes[node.index()].server);
    }
    const ScheduleSource& source =
        tensor_ && family.kind() == GroupKind::kTp ? tensor_ : schedules_;
    const std::shared_ptr<const Schedule> schedule =
        source(op.comm, op.bytes, fabrics_.shape_of(servers));
    for (const Slot& slot : schedule->slots) {
      known->second = std::max(known->second, slot.channel + 1);
    }
  }
  return known->second;
}

}  // namespace lockstep
