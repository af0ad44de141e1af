#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "simulator/network/network_engine.h"
#include "simulator/replay/replay.h"
#include "topologies/topology.h"

namespace lockstep {

/// How long a collective takes where the groups of these ranks enter theirs at once and have the
/// network to themselves: until the last one is through. `work` has the families, `nodes` are those
/// of its ranks; `network` is used up. What slows links during the step is left out. O(a replay of
/// one operation a rank).
Time time_together(const RankPrograms& work, const ProgramOp& op,
                   std::span<const std::int32_t> ranks, const std::vector<NodeId>& nodes,
                   const Topology& topology, NetworkEngine& network,
                   const ScheduleSource& schedules, const ReplayOptions& options);

}  // namespace lockstep
