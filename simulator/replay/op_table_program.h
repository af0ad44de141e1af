#pragma once

#include <cstdint>

#include "simulator/replay/program.h"
#include "workloads/workload.h"

namespace lockstep {

/// The programs of a rank-by-rank job; operation i of OpProgram p becomes operation i of program p.
/// Ranks that no program names do nothing. A family's kind is its name up to the first '.': the
/// family "dp.shard" counts as dp; what is no kind's name counts as world. PRECONDITION: validate()
/// accepted the workload. O(operations + ranks).
RankPrograms op_table_program(const OpTable& table, std::int64_t gpus);

/// Gives programs that were made of a table the computation times of another one, which is
/// different in those alone. False where it is of another size. O(operations).
bool take_computations(const OpTable& table, RankPrograms& work);

/// Puts jobs side by side on the cluster: the ranks of job i follow those of job i - 1.
RankPrograms side_by_side(std::vector<RankPrograms> jobs);

}  // namespace lockstep
