#pragma once

#include <cstdint>

#include "planner/aceso/cost.h"

namespace lockstep::aceso {

/// Sets the stage's recompute flags as Aceso does (check_recompute; docs/planner.md): names with
/// the largest activations first, until the stage fits or nothing is left. The plan may stay over
/// the limit. `spare_mb` is added to the need. O(ops * names).
void greedy_recompute(Stage& stage, std::int64_t first_op, std::int64_t behind,
                      std::int64_t microbatch, const Database& database, const Model& model,
                      double memory_limit_mb, double spare_mb = 0);

}  // namespace lockstep::aceso
