#pragma once

#include "app/generate_exact.h"
#include "app/simulate/simulate_options.h"
#include "base/json.h"
#include "simulator/replay/step_result.h"

namespace lockstep {

/// Says in the result what it is of: workload or model, topology, engine.
void label_step(const SimulateOptions& options, StepResult& result);

/// The members of docs/formats/simulate-json.md that are not the engine's: "memory", "headline" and
/// "roofline" of a job (nullptr: there is none), "detail" where the options had one filled.
Json more_of_step(const SimulateOptions& options, const StepResult& result, const ExactJob* job);

}  // namespace lockstep
