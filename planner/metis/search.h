#pragma once

#include "planner/metis/cost.h"

namespace lockstep::metis {

struct Ranked {
  Plan plan;
  Price price;
};

/// The best sound plans, cheapest first; the first is the optimum of the space: stages on 1, 2, 4 …
/// GPUs, tp a power of two, every layer in a stage and no stage empty, memory within Metis's
/// estimate. With `most` they are the `most` best plans of the whole space (fewer if there are not
/// as many); with 0 the best plan for each order of device types and number of microbatches.
///
/// A dynamic program over (GPUs used, layers done, last stage) with fronts of (slowest, sum,
/// update, gradients): a label goes when `most` others are no worse in any of them, since each of
/// these then ends in a plan that is no worse. Orders and numbers of microbatches are looked at by
/// `threads` at once (0: one a core); the result does not depend on it. ERRORS: Error if there is
/// none, with what left_out() says.
std::vector<Ranked> search(const Problem& problem, std::size_t most = 0, int threads = 1);

/// The profiles that some stage would need and that are missing, and what cannot be planned without
/// each: of every device type, tp a power of two up to max_tp (and the GPUs there are), samples a
/// rank that divide the global batch, up to max_batch.
std::vector<std::string> left_out(const Problem& problem);

}  // namespace lockstep::metis
