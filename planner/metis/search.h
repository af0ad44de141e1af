#pragma once

#include "planner/metis/cost.h"

namespace lockstep::metis {

struct Ranked {
  Plan plan;
  Price price;
};

/// The best sound plan for each order of device types and number of microbatches, cheapest first;
/// the first is the optimum of the space: stages on 1, 2, 4 … GPUs, tp a power of two, every layer
/// in a stage and no stage empty, memory within Metis's estimate.
///
/// A dynamic program over (GPUs used, layers done, last stage) with Pareto fronts of (slowest, sum,
/// update, gradients). ERRORS: Error if there is none.
std::vector<Ranked> search(const Problem& problem);

}  // namespace lockstep::metis
