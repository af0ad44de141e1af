#pragma once

#include <span>

#include "simulator/network/network_engine.h"
#include "simulator/replay/op_names.h"
#include "simulator/replay/replay.h"

namespace lockstep {

/// Compares a step folded by symmetry with the same step of every rank: each rank's end, every
/// operation of rank 0 and the number of transfers, to the picosecond.
/// ERRORS: Error that names the first difference.
void check_fold(const ReplayResult& folded, const ReplayResult& full, const OpNames& name_of);

/// The same of the ports: what they carried, and where links do not change how long they were busy,
/// but for rounding of sums.
void check_ports(std::span<const PortUse> folded, std::span<const PortUse> full, bool links_change);

}  // namespace lockstep
