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

struct PredictionOptions {
  std::optional<Time> launch;   ///< replaces the host's time for each operator
  std::optional<Time> limit;    ///< CPU time after which a replay is given up, with a failure
  bool recipe_overlap = false;  ///< products overlap with their transfers where the recipe says so
};

/// The flow engine's step on the row's cluster.
ScoredStep predict(const PublishedStep& step, const PredictionOptions& options);

/// Rows of a table by their number.
enum class RowHalf : std::uint8_t { kBoth, kOdd, kEven };
bool is_in(RowHalf half, const PublishedStep& step);

/// One score a source, sorted by name, then one of all ("all"). Steps that failed, or are not of
/// the half, do not count.
std::vector<StepScore> scores_of(std::span<const ScoredStep> steps, RowHalf half = RowHalf::kBoth);

}  // namespace lockstep
