#pragma once

#include <cstdint>
#include <vector>

#include "workloads/workload.h"

namespace lockstep {

/// Makes two passes that stand one after the other, operations [begin, middle) and from `middle` to
/// the end, take turns, so that one's transfers run while the other computes (DeepSeek-V3 report,
/// section 3.2.1, figure 4). A turn ends before a computation that waits for a collective of the
/// same turn; while the other pass waits so, it ends only there; otherwise also after a computation
/// by which the pass is ahead of the other, each in parts of its own computing. `after` within the
/// range is renumbered. PRECONDITION: the second pass waits for nothing of the first.
/// Returns the new index of each operation from `begin` on. O(operations).
std::vector<std::int32_t> interleave(std::vector<Op>& ops, std::size_t begin, std::size_t middle);

}  // namespace lockstep
