#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "simulator/replay/fabric_of.h"
#include "simulator/replay/replay.h"

namespace lockstep {

/// How many channels the collectives of ranks have, each of which NCCL gives a thread block: those
/// of their schedules. References are kept. O(log of what was asked for), and a schedule the first
/// time.
class CollectiveChannels {
 public:
  /// `tensor` in place of `schedules` for TP groups, where it is set.
  CollectiveChannels(const RankPrograms& work, const std::vector<NodeId>& node_of_rank,
                     const Topology& topology, const ScheduleSource& schedules,
                     const ScheduleSource& tensor)
      : work_(work),
        node_of_rank_(node_of_rank),
        topology_(topology),
        fabrics_(topology),
        schedules_(schedules),
        tensor_(tensor) {}

  /// PRECONDITION: a collective.
  std::int32_t operator()(std::int32_t rank, const ProgramOp& op);

 private:
  const RankPrograms& work_;
  const std::vector<NodeId>& node_of_rank_;
  const Topology& topology_;
  const ServerFabrics fabrics_;
  const ScheduleSource& schedules_;
  const ScheduleSource& tensor_;
  std::map<std::tuple<std::int32_t, std::int32_t, CommType, Bytes>, std::int32_t>
      known_;  // by family, group, what and how much
};

}  // namespace lockstep
