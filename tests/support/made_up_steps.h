#pragma once

#include <cstdint>
#include <functional>

#include "trace/trace.h"

namespace lockstep::testing {

/// A training job whose trace we make up: one forward, one backward pass in turn (1F1B).
struct MadeUpJob {
  std::int32_t dp = 2, stages = 2, microbatches = 4, steps = 2;
  bool overlap = false;  ///< gradients are scattered during the backward passes
  /// Tensor-parallel ranks of each dp_rank, and how many dp_ranks in a row share experts. More than
  /// one of either: passes are followed by transfers with those peers.
  std::int32_t tp = 1, ep = 1;
};

/// Seconds an operation takes: computation, or a transfer without waiting. Small multiples of 1/64
/// keep all times exact.
using OpSeconds = std::function<float(const TraceRow& row)>;

/// Every operation of a type takes the same; multiples of 1/8 second.
float uniform(const TraceRow& row);

/// Plays the job by recursion over its operations ("when can this start?"), which shares nothing
/// with the analysis. Nothing is launched late. Parameters are gathered and gradients scattered if
/// dp > 1. With tp or ep the rows say their ranks.
Trace play(const MadeUpJob& job, const OpSeconds& seconds);

}  // namespace lockstep::testing
