#pragma once

#include <functional>

#include "app/simulate/simulate_options.h"
#include "simulator/replay/step_result.h"
#include "trace/timeline.h"

namespace lockstep {

/// One step on an engine, of a workload and a topology that are given.
using EngineRun = std::function<StepResult(const SimulateOptions& options, Timeline* timeline)>;

/// For a further run, of which only the time is wanted: it writes nothing, and files that the step
/// at hand has written stay as they are.
SimulateOptions once_more(SimulateOptions options);

/// The step; what the stragglers cost, and several steps, by further runs. `engine` is called by
/// several threads at a time; with the timeline only for the step itself.
StepResult run_steps(const SimulateOptions& given, Timeline* timeline, const EngineRun& engine);

}  // namespace lockstep
