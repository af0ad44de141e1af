#pragma once

#include <span>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "simulator/replay/replay.h"
#include "simulator/replay/step_simulation.h"
#include "topologies/topology.h"
#include "workloads/workload.h"

namespace lockstep {

/// How long a layer table's pp_comm bytes take from every rank of the first stage to its peer in
/// the second, all at once, beside what is slow from the step's start on; 0 without stages. `nodes`
/// are those of the ranks. ERRORS: Error where a dead link holds a message for good.
Time stage_hop(const LayerTable& table, const Parallelism& parallel, const Topology& topology,
               std::span<const NodeId> nodes, const NetworkFactory& factory,
               std::span<const NetworkChange> changes, Time send_latency);

}  // namespace lockstep
