#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "planner/metis/cost.h"
#include "planner/metis/memory.h"

namespace lockstep::metis {

constexpr double kFar = std::numeric_limits<double>::infinity();

/// A stage's GPUs and strategy, without its layers.
struct StageOption {
  int gpus = 0;
  Strategy strategy;
  std::vector<std::vector<double>> prefix;  ///< sums of layers' ms: a list a distinct group
  double sync = kFar;                       ///< of a last stage
  StageMemory memory;
  double gradient_ms_a_byte = 0;

  /// What the layers [begin, end) take, in ms.
  double time(std::int64_t begin, std::int64_t end) const;
  bool holds(std::int64_t begin, std::int64_t end) const {
    return memory.demand_mb(begin, end) <= memory.room_mb();
  }
};

/// All that may begin at rank `first` of `ranks`, as space.h has them, for which there are
/// profiles.
std::vector<StageOption> stage_options(const Problem& problem, const std::vector<Rank>& ranks,
                                       int first, std::int64_t batches);

}  // namespace lockstep::metis
