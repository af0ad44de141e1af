#pragma once

#include <functional>
#include <string>
#include <vector>

#include "planner/aceso/search/pipeline.h"

namespace lockstep::aceso {

/// One plan of the ranking.
struct RankedPlan {
  Plan plan;
  PlanPrice price;
};

struct SearchOptions {
  std::int64_t max_work = 0;   ///< labels after which it ends, proven or not; 0: never
  std::size_t most = 1;        ///< plans wanted, at least 1
  int threads = 1;             ///< for the microbatches' bounds; 0: one a core
  SearchMemo* memo = nullptr;  ///< of an earlier search of the same problem, and for a later one
  std::function<bool()> stop;  ///< asked now and then once there is a plan: then ends; may be empty
};

struct SearchResult {
  std::vector<RankedPlan> plans;     ///< fastest first
  double bound_ms = 0;               ///< no plan of the space is faster
  bool exact = true;                 ///< the bound is the best plan's time; `most` are the best
  std::int64_t work = 0;             ///< labels looked at; the same on every machine
  std::vector<std::string> removed;  ///< parts of the space that the input leaves out, and why
};

/// What is said of a microbatch whose plans would drop samples.
std::string no_multiple(const Problem& problem, std::int64_t microbatch);

/// The fastest plans of the space, the best one proven up to the gap to `bound_ms`:
/// contiguous cuts anywhere, stages on 1, 2, 4 or 8 GPUs within a server, (tp, dp) and the
/// algorithm chosen op by op where Aceso may change them, recompute flags free. The first `most` of
/// them are the best of what each number of stages with each microbatch has at best, as far as
/// `exact` says; behind them stands what else was met. The result does not depend on threads,
/// unless it was stopped. ERRORS: Error if nothing is in the space, naming what is missing.
SearchResult search(const Problem& problem, const SearchOptions& options = {});

}  // namespace lockstep::aceso
