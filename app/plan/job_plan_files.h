#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/plan/job_plan_report.h"
#include "topologies/topology.h"

namespace lockstep {

/// Writes a plan as what starts it, into a folder that is made if absent:
///
///   megatron.sh      a torchrun line of Megatron-LM's pretrain_gpt.py
///   deepspeed.json   DeepSpeed's configuration: batch, ZeRO stage, precision, checkpointing
///   job.sh           the `lockstep simulate` line
///   plan.json        `json`: job_plan_json() as it is printed
///
/// ERRORS: Error naming the folder or file.
void write_job_plan(const std::string& folder, const JobPlanReport& report,
                    const JobProblem& problem, const std::string& json);

/// Megatron-LM's flags of a model's sizes; nothing where it has none for it (encoder and decoder,
/// windows, latent attention, …).
std::optional<std::vector<std::string>> megatron_model_flags(const Model& model, std::int64_t seq);

/// Megatron-LM's flags for how a job is cut.
std::vector<std::string> megatron_job_flags(const Job& job);

/// A torchrun line of Megatron-LM's pretrain_gpt.py with the flags of a model and of its job, one
/// a line; where it has none for the model, a comment before it says so.
std::string megatron_launch(const Job& job, std::int64_t per_server, std::int64_t servers,
                            std::vector<std::string> more_flags = {});

/// What of a plan Megatron-LM's flags, and DeepSpeed's configuration, cannot say.
std::vector<std::string> beyond_megatron(const Job& job);
std::vector<std::string> beyond_deepspeed(const Job& job);

}  // namespace lockstep
