#pragma once

#include "planner/aceso/search/search.h"

namespace lockstep::aceso {

/// Megatron's regular plans (SuperScaler fa80ad0, gen_megatron_plan), a baseline: equal stages of
/// whole layers, one (tp, dp) for all, algorithm 0, everything recomputed or nothing. Stages may
/// span servers. Those that hold all samples and fit, fastest first (ties: less memory); `work` is
/// how many. ERRORS: Error if none fits.
SearchResult megatron_grid(const Problem& problem);

}  // namespace lockstep::aceso
