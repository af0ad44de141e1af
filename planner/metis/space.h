#pragma once

#include <string>
#include <vector>

#include "planner/metis/cost.h"

namespace lockstep::metis {

/// Why no search puts a stage on these ranks so, in words; empty if it does: GPUs and tp are powers
/// of two and tp at most max_tp, each group has its samples and 1 to max_batch of them at once.
/// GPUs of one type share the samples evenly, several types by their speed.
std::string left_out_because(const Problem& problem, const std::vector<Rank>& ranks, int first,
                             Strategy strategy, std::int64_t batches);

/// Why a search leaves out a plan that can be priced, in sentences; none if it does not, and then
/// what it finds is no slower. Memory beyond Metis's estimate is one of them; `fits` tells it.
struct Soundness {
  std::vector<std::string> warnings;
  bool fits = true;
};
Soundness soundness(const Problem& problem, const Plan& plan);

}  // namespace lockstep::metis
