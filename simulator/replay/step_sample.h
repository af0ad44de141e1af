#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "simulator/replay/step_result.h"
#include "simulator/replay/straggler.h"

namespace lockstep {

/// Runs one step with some stragglers; another `step` draws other numbers. Called from several
/// threads at a time.
using RunStep = std::function<Time(std::span<const Straggler> stragglers, std::int64_t step)>;

/// What each of the stragglers costs, by paired runs of the same step: without it, and without any.
/// Fills `stragglers` and `clean` of the result. One run a straggler, and one more if there are
/// several; on some threads (0: one a core), on which the result does not depend.
void price_stragglers(std::span<const Straggler> stragglers, int threads, const RunStep& run,
                      StepResult& result);

/// The times of steps 0 … count - 1, on some threads (0: one a core); the result does not depend on
/// how many. An error is that of the first step that has one. PRECONDITION: count >= 1.
StepSample sample_steps(std::span<const Straggler> stragglers, std::int64_t count,
                        std::uint64_t seed, int threads, const RunStep& run);

/// Mean, deviation, interval and percentiles of `totals`.
void summarise(StepSample& sample);

}  // namespace lockstep
