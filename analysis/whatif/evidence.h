#pragma once

#include <vector>

#include "analysis/whatif/op_table.h"
#include "base/json.h"

namespace lockstep::whatif {

/// "workers" of docs/formats/causes-json.md: every worker with how slow it makes the job; and of
/// the 256 slowest what shows it, by type of operation: the median time of its operations beside
/// that of its stage's workers, and its longest one. `by_worker`: S_w, [stage * workers of a stage
/// + lane of a step]. O(operations).
Json worker_evidence(const OpTable& table, const std::vector<double>& by_worker);

}  // namespace lockstep::whatif
