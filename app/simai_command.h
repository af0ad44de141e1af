#pragma once

#include <string>

#include "generator/job.h"

namespace lockstep {

/// The words behind `lockstep generate` that write a job as SimAI's text: simai-training with the
/// flags that AICB has for it. Empty for a model that is no decoder with attention and an MLP or
/// experts in every layer. `lost`: what of the job AICB has no flag for, as "grouped queries".
struct SimaiCommand {
  std::string words, lost;
};
SimaiCommand simai_command(const Job& job);

}  // namespace lockstep
