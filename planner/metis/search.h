#pragma once

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
  /// The plans of a part, best first; their prices follow from them.
  virtual bool find(const Part& part, std::size_t most, std::vector<Plan>& plans) = 0;
  virtual void add(const Part& part, std::size_t most, const std::vector<Ranked>& found) = 0;
};

/// The best sound plans, cheapest first; the first is the optimum of the space: all GPUs in stages
/// as left_out_because() has them, every layer in a stage and no stage empty, memory within Metis's
/// estimate: all plans for which soundness() has no warning. With `most` they are the `most` best
/// plans of the whole space (fewer if there are not as many); with 0 the best plan for each order
/// of device types and number of microbatches.
///
/// A dynamic program over (GPUs used, layers done, last stage) with fronts of (slowest, sum,
/// update, gradients): a label goes when `most` others are no worse in any of them, since each of
/// these then ends in a plan that is no worse. Orders and numbers of microbatches are looked at by
/// `threads` at once (0: one a core); the result does not depend on it, nor on what of it comes
/// from `memo`. ERRORS: Error if there is none, with what left_out() says.
std::vector<Ranked> search(const Problem& problem, std::size_t most = 0, int threads = 1,
                           SearchMemo* memo = nullptr);

/// The profiles that some stage would need and that are missing, and what cannot be planned without
/// each: of every device type, tp a power of two up to max_tp (and the GPUs there are), samples a
/// rank that divide the global batch, up to max_batch; with several types also powers of two.
std::vector<std::string> left_out(const Problem& problem);

}  // namespace lockstep::metis
