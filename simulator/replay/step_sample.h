#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "simulator/replay/step_result.h"
#include "simulator/replay/straggler.h"

namespace lockstep {

/// Runs one step with some stragglers; another `step` draws other numbers. Called from several
/// threads at a time.
using RunStep = std::function<Time(std::span<const Straggler> stragglers, std::int64_t step)>;

/// A step with stragglers, and what each of them costs, by paired runs of the same step: without
/// it, and without any; `stragglers` and `clean` of the result. One run a straggler, and one more
/// if there are several, beside that of the step itself (`step`, called once); on some threads (0:
/// one a core), on which the result does not depend. An error is the step's where it has one.
StepResult price_stragglers(std::span<const Straggler> stragglers, int threads,
                            const std::function<StepResult()>& step, const RunStep& run);

/// How many runs that takes, the step's own among them.
std::size_t runs_to_price(std::size_t stragglers);

/// The times of steps 0 … count - 1, on some threads (0: one a core); the result does not depend on
/// how many. An error is that of the first step that has one; where a StopSignal stops the work,
/// the steps up to the first that is not done are the result, if there are any.
/// PRECONDITION: count >= 1.
StepSample sample_steps(std::span<const Straggler> stragglers, std::int64_t count,
                        std::uint64_t seed, int threads, const RunStep& run);

/// Mean, deviation, interval and percentiles of `totals`.
void summarise(StepSample& sample);

}  // namespace lockstep
