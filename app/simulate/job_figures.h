#pragma once

#include "app/generate_exact.h"
#include "base/json.h"
#include "base/units.h"

namespace lockstep {

/// What a step means for a job, for "headline" of docs/formats/simulate-json.md: tokens, model
/// FLOPs utilisation and GPU hours; the price of a million tokens if `gpu_hour_price` is positive.
Json headline_json(const ExactJob& job, Time step, double gpu_hour_price);

/// Its operators and the GPU's roofs, for "roofline" of the same.
/// PRECONDITION: exact_workload_of() was called.
Json roofline_json(const ExactJob& job);

}  // namespace lockstep
