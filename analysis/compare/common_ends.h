#pragma once

#include <cstdint>
#include <vector>

#include "workloads/comm.h"

namespace lockstep::compare {

/// Communications of one rank, in time.
struct EndsOfRank {
  struct Op {
    CommType op = CommType::kNone;
    std::int64_t bytes = -1;  ///< that all ranks of it have; -1: not known, or they may differ
    double end_s = 0;
    double duration_s = -1;  ///< -1: its ranks need not end together
  };
  std::int32_t rank = 0;
  std::vector<Op> ops;
};

/// Which ranks are one group, where no name tells: those that do the same in the same order, and
/// whose collectives end together, within 20 us or a tenth of the shorter one, at the median.
///
/// `size`: of a group; 0: not known. Where it is known the nearest ranks are one, at most so many:
/// ranks of one collective end within microseconds of each other, replicas that do the same beside
/// them further apart. Where the nearest rank outside is not twice as far as those within, their
/// ends do not tell, and each rank is alone. Where it is not known, those near the first one.
///
/// Returns the groups, each in ascending order. Looks at some neighbours in time of each rank and
/// at some of its operations: O(ranks log(ranks)) and O(ops) memory.
std::vector<std::vector<std::int32_t>> ranks_that_end_together(const std::vector<EndsOfRank>& ranks,
                                                               std::int32_t size);

}  // namespace lockstep::compare
