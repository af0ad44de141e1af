#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/warnings.h"
#include "generator/megatron_args/training_log.h"

namespace lockstep {

using LoggedArguments = std::map<std::string, LoggedArgument, std::less<>>;

/// The arguments of a log as somebody asked for them, under Megatron-LM's names:
///
///   - without what its validate_args() works out of others (the width of an MLP, expert tensor
///     parallelism, …), so that these follow where a flag of ours replaces the others;
///   - what forks call otherwise by Megatron-LM's name (Megatron-DeepSpeed: topk, num_experts [1],
///     ds_sequence_parallel_size, …); a list from before fused attention without it;
///   - what the lines behind the list tell: the vocabulary.
///
/// Arguments of forks that change the step and are not modelled are warned about. O(n log n).
LoggedArguments asked_arguments(const TrainingLog& log, const std::string& file,
                                Warnings& warnings);

}  // namespace lockstep
