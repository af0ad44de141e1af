#pragma once

#include "app/generate_exact.h"
#include "base/json.h"
#include "base/units.h"

namespace lockstep {

/// What a step means for a job, for "headline" of docs/formats/simulate-json.md: tokens, model
/// FLOPs utilisation and GPU hours; the price of a million tokens if `gpu_hour_price` is positive.
Json headline_json(const ExactJob& job, Time step, double gpu_hour_price);

/// Lines for a terminal: how the job is cut, how fast it trains, and of pipelines whose time it is
/// that a table of the step shows. `is_mean`: `step` is the mean of several.
std::string job_lines(const ExactJob& job, Time step, bool is_mean);

/// "parallel" of docs/formats/simulate-json.md.
Json parallel_json(const Job& job);

/// Its operators and the GPU's roofs, for "roofline" of the same.
/// PRECONDITION: exact_workload_of() was called.
Json roofline_json(const ExactJob& job);

}  // namespace lockstep
