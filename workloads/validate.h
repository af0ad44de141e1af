#pragma once

#include <string>

#include "workloads/workload.h"

namespace lockstep {

/// Checks what every user of a Workload may rely on. What the readers return satisfies it; whoever
/// builds a Workload may call it.
///
///  - at least one job, each with a name of its own; degrees in range, gpus at most kMaxGpus;
///  - a LayerTable has a layer, a known policy, no negative time or size, checkpoints among its
///    layers, no send/receive;
///  - an OpTable has a program and gpus >= 1; ranks are in [0, gpus) and in one program at most;
///    an operation depends on earlier ones only, so that no cycle is possible; it is of one kind;
///    groups of a family do not overlap; a rank that uses a family is in one of its groups, and all
///    ranks of a group enter the same collectives in the same order; for each pair of ranks, sends
///    and receives agree in number and bytes.
///
/// ERRORS: Error whose field is the place as in our JSON ("jobs[0].op_table.programs[2].ops[7]").
/// O(size of the workload + gpus).
void validate(const Workload& workload);

/// The OpTable's part; `path` is its place.
void validate_op_table(const OpTable& table, std::int64_t gpus, const std::string& path);

}  // namespace lockstep
