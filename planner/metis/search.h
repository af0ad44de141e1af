#pragma once

#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "planner/metis/cost.h"

namespace lockstep::metis {

struct Ranked {
  Plan plan;
  Price price;
};

/// What a search has found in the parts of its space: orders of device types, and numbers of
/// microbatches. Asked by several threads at once.
class SearchMemo {
 public:
  virtual ~SearchMemo() = default;
  using Part = std::pair<std::vector<std::string>, std::int64_t>;
  /// The plans of a part that a search for `most` came to, best first; their prices follow.
  virtual bool find(const Part& part, std::size_t most, std::vector<Plan>& plans) = 0;
  virtual void add(const Part& part, std::size_t most, const std::vector<Ranked>& found) = 0;
};

struct SearchOptions {
  std::size_t most = 0;        ///< plans wanted; 0: the best of each part of the space
  int threads = 1;             ///< 0: one a core
  SearchMemo* memo = nullptr;  ///< of an earlier search of the same problem, and for a later one
  std::int64_t max_work = 0;   ///< labels after which it ends, proven or not; 0: never
  std::function<bool()> stop;  ///< asked now and then: ends with what there is; may be empty
};

struct SearchResult {
  std::vector<Ranked> plans;                                  ///< cheapest first
  double bound_ms = std::numeric_limits<double>::infinity();  ///< no sound plan is below
  bool exact = true;      ///< the first is the best; with `most`, all are
  std::int64_t work = 0;  ///< labels looked at, beside what the memo knew
};

/// The best sound plans, cheapest first; the first is the optimum of the space: all GPUs in stages
/// as left_out_because() has them, every layer in a stage and no stage empty, memory within Metis's
/// estimate: all plans for which soundness() has no warning. With `most` they are the `most` best
/// plans of the whole space (fewer if there are not as many); with 0 the best plan for each order
/// of device types and number of microbatches.
///
/// A dynamic program over (GPUs used, layers done, last stage) with fronts of (slowest, sum,
/// update, gradients): a label goes when `most` others are no worse in any of them, since each of
/// these then ends in a plan that is no worse, or when by outlook.h no plan that begins so is among
/// the best. The plans that outlook.h has are those to beat from the start.
/// Orders and numbers of microbatches are looked at by `threads` at once. The result depends
/// neither on that nor on what of it comes from `memo`, unless it was stopped. Each part of the
/// space gets an equal share of max_work, beyond the plans to beat. ERRORS: Error if there is no
/// plan, with what left_out() says.
SearchResult search(const Problem& problem, const SearchOptions& options = {});

/// The profiles that some stage would need and that are missing, and what cannot be planned without
/// each: of every device type, tp a power of two up to max_tp (and the GPUs there are), samples a
/// rank that divide the global batch, up to max_batch; with several types also powers of two.
std::vector<std::string> left_out(const Problem& problem);

}  // namespace lockstep::metis
