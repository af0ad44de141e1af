#pragma once

#include <cstdint>
#include <vector>

#include "workloads/workload.h"

namespace lockstep {

/// Makes two passes that stand one after the other, operations [begin, middle) and from `middle` to
/// the end, take turns: each turn is up to and including the next computation, of the pass that has
/// done the smaller share of its own computing. So one's transfers run while the other computes
/// (DeepSeek-V3 report, section 3.2.1). `after` within the range is renumbered. PRECONDITION: the
/// second pass waits for nothing of the first.
/// Returns the new index of each operation from `begin` on. O(operations).
std::vector<std::int32_t> interleave(std::vector<Op>& ops, std::size_t begin, std::size_t middle);

}  // namespace lockstep
