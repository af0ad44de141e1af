#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/step_score/published_steps.h"
#include "base/units.h"

namespace lockstep {

/// A published step and what we say, or why we cannot.
struct ScoredStep {
  const PublishedStep* step = nullptr;
  double predicted_s = 0;
  std::string failure;  ///< empty: predicted
  double ratio() const { return predicted_s / step->measured_s; }
};

/// Errors of some predictions: |predicted / measured - 1|; bias is the geometric mean of the ratios
/// less 1.
struct StepScore {
  std::string source;
  std::size_t steps = 0;
  double mean = 0, median = 0, p90 = 0, bias = 0;
};

/// The flow engine's step on the row's cluster. `launch` replaces the host's time for each
/// operator.
ScoredStep predict(const PublishedStep& step, const std::optional<Time>& launch);

/// One score a source, sorted by name, then one of all ("all"). Steps that failed do not count.
std::vector<StepScore> scores_of(std::span<const ScoredStep> steps);

}  // namespace lockstep
