#pragma once

#include <string>
#include <vector>

#include "planner/aceso/search/pipeline.h"

namespace lockstep::aceso {

/// One plan of the ranking.
struct RankedPlan {
  Plan plan;
  PlanPrice price;
};

struct SearchResult {
  std::vector<RankedPlan> plans;     ///< fastest first
  double bound_ms = 0;               ///< no plan of the space is faster
  bool exact = true;                 ///< the bound is the best plan's time
  std::int64_t work = 0;             ///< labels looked at; the same on every machine
  std::vector<std::string> removed;  ///< parts of the space that the input leaves out, and why
};

/// The fastest plans of the space, the best one proven up to the gap to `bound_ms`:
/// contiguous cuts anywhere, stages on 1, 2, 4 or 8 GPUs within a server, (tp, dp) and the
/// algorithm chosen op by op where Aceso may change them, recompute flags free. `max_work` ends the
/// search early (0: never); the plans and the bound hold all the same. ERRORS: Error if nothing is
/// in the space, naming what is missing.
SearchResult search(const Problem& problem, std::int64_t max_work = 0);

}  // namespace lockstep::aceso
