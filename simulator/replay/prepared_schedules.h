#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "simulator/collectives/algorithm.h"
#include "simulator/replay/fabric_of.h"
#include "simulator/replay/replay.h"

namespace lockstep {

/// A schedule with what running it needs, made once for all groups of a shape.
struct PreparedSchedule {
  std::shared_ptr<const Schedule> schedule;
  std::vector<std::int32_t> waiter_begin, waiter;  // per slot: the slots that wait for it
  std::vector<std::int32_t> from_begin, from;      // per place: the slots that it sends on
  std::vector<std::int64_t> shares;                // per rank: transfers to it and from it
  std::int32_t steps = 0;  ///< of all slots, where these have equally many transfers, else 0
  Bytes bytes_each;        ///< what each transfer puts on the wire, where all do the same, else -1
  /// Of each group or pair (CollectiveRuns::Key without its sequence): one a slot; or one a
  /// transfer of each, numbered as by Schedule::connections_of_slot().
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::vector<ConnectionId>>
      connections;
  std::size_t memory_bytes() const;
};

/// Schedules of the collectives that programs ask for, prepared when first asked for, and kept as
/// long as they are used or take less than 256 MiB together.
class PreparedSchedules {
 public:
  /// All of it must outlive it.
  PreparedSchedules(const RankPrograms& work, const std::vector<NodeId>& node_of_rank,
                    const Topology& topology, const ScheduleSource& source,
                    const ReplayOptions& options);

  /// Of an operation on a group of a family, or (family below 0) on these two ranks.
  /// O(log of what is known); the first time as building the schedule.
  std::shared_ptr<PreparedSchedule> of(const ProgramOp& op, std::int32_t family, std::int32_t group,
                                       const std::vector<std::int32_t>& members);

 private:
  std::int32_t shape_of(std::int32_t family, std::int32_t group,
                        const std::vector<std::int32_t>& members);
  void forget_unused();

  const RankPrograms& work_;
  const std::vector<NodeId>& node_of_rank_;
  const Topology& topology_;
  const ServerFabrics fabrics_;
  const ScheduleSource& source_;
  const ReplayOptions& options_;
  std::map<GroupShape, std::int32_t> shapes_;              // of groups, numbered
  std::vector<std::vector<std::int32_t>> shape_of_group_;  // by family and group; -1 unknown
  std::map<std::tuple<CommType, Bytes, std::int32_t, bool>, std::shared_ptr<PreparedSchedule>>
      known_;  // by shape, and whether of a TP group that has schedules of its own
  std::size_t bytes_ = 0;
};

}  // namespace lockstep
