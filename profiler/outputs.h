#pragma once

#include <string>

#include "generator/compute/profile_json.h"
#include "generator/job.h"
#include "profiler/measurements.h"
#include "profiler/profile_plan.h"

namespace lockstep {

/// The profile that `generate --profile` and `simulate --profile` take: for each operator of the
/// plan the median of its kernel (of several with one key: the mean of their medians). Operators
/// whose kernel was left out are left out.
OperatorProfile operator_profile(const ProfilePlan& plan, const Measurements& measurements);

/// AICB's AIOB text: a section for each part, with most, least and mean in microseconds of the
/// samples that AICB's own rule keeps; of a part with several kernels their sums. `train_iter` is
/// the least number of samples. Three decimals: a reader of AICB's takes no exponents.
/// ERRORS: a kernel of the plan that was not measured.
std::string aiob_text(const ProfilePlan& plan, const Measurements& measurements);

/// AICB's own name of that file: "{model}-world_size{}-tp{}-pp{}-ep{}-gbs{}-mbs{}-seq{}-flash_attn-
/// {True|False}.txt".
std::string aiob_file_name(const Job& job);

/// Metis cuts a model into stages by itself, and knows no context parallelism.
bool is_metis_job(const Job& job);
/// One of Metis's profile files: forward and backward time, memory and parameter bytes of the
/// embedding, each layer and the head. Memory is weights, gradients and optimizer state, kept
/// activations and the most that one of the layer's kernels holds. The synchronisation that Metis
/// reads from the difference to the whole pass is 0.
/// ERRORS: a kernel that was not measured; not is_metis_job().
std::string metis_json(const Job& job, const Measurements& measurements);
/// "DeviceType.H200_tp2_bs4.json".
std::string metis_file_name(const Job& job, const MeasuredDevice& device);

/// A table for people: a line for each kernel with median, spread, rate, clock and outliers.
std::string measurement_table(const Measurements& measurements);

}  // namespace lockstep
