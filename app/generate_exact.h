#pragma once

#include <span>
#include <string>

#include "generator/process/process_workload.h"

namespace lockstep {

/// The workload of flavour exact that a command line describes: a model (--model NAME,
/// --model-file F, --hf-config F), the flags of a job, and a training process (--process, or the
/// model file's own) where one is given. `init_ops` is empty without a process.
/// ERRORS: those of the flags, the model, the process and the workload.
ProcessWorkload exact_from_flags(std::span<const std::string> words);

/// The flags, for --help.
std::string exact_flags_help();

}  // namespace lockstep
