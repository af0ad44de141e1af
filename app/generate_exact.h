#pragma once

#include <span>
#include <string>

#include "workloads/workload.h"

namespace lockstep {

/// The workload of flavour exact that a command line describes: a model (--model NAME,
/// --model-file F, --hf-config F) and the flags of a job.
/// ERRORS: those of the flags, the model and exact_workload().
Workload exact_from_flags(std::span<const std::string> words);

/// The flags, for --help.
std::string exact_flags_help();

}  // namespace lockstep
