#pragma once

#include <vector>

#include "planner/aceso/search/search.h"

namespace lockstep::aceso {

/// Megatron's regular plans (SuperScaler fa80ad0, gen_megatron_plan), a baseline: equal stages of
/// whole layers, one (tp, dp) for all, algorithm 0, everything recomputed or nothing. Stages may
/// span servers. Those that fit, fastest first (ties: less memory). ERRORS: Error if none fits.
std::vector<RankedPlan> megatron_grid(const Problem& problem);

}  // namespace lockstep::aceso
