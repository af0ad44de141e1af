#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "simulator/replay/program.h"
#include "simulator/replay/replay.h"
#include "workloads/comm.h"
#include "workloads/op_type.h"

namespace lockstep {

/// A piece of the chain of operations that decides when the step ends.
struct CriticalPiece {
  std::int32_t rank = 0, op = 0;
  Time begin, end;
};

/// How much of the chain a link limits, in one direction.
struct LinkShare {
  PortId port;
  Time time;
};

/// The chain that ends with the step, from its last operation back to the start: an operation began
/// when the last of those it comes after had ended, of its program or before it on its stream; and
/// a communication moved from when its last rank had entered, so there the chain goes on to that
/// rank. No piece overlaps another; where there was nothing to wait for, as between a computation's
/// lead and its begin, is `gap`. The pieces and the gap add up to the step.
struct CriticalPath {
  std::vector<CriticalPiece> pieces;  ///< from the start to the end
  Time total, gap;
  Time compute;
  std::array<Time, 7> comm_by_group{};   ///< by GroupKind; messages between ranks count as PP
  std::array<Time, kOpTypes> by_type{};  ///< compute and communication
  std::vector<Time> by_rank;
  std::vector<LinkShare> by_link;  ///< of its communication; critical_links() fills it
};

/// `timing[slot_of_rank[rank]][op]`: of all ranks of a run that ended; ranks that share a slot did
/// the same. O(operations of all programs + operations of all slots + pieces times the size of a
/// group).
CriticalPath critical_path(const RankPrograms& work,
                           const std::vector<std::vector<OpTiming>>& timing,
                           const std::vector<std::int32_t>& slot_of_rank);

}  // namespace lockstep
