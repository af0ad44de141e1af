#pragma once

#include <span>
#include <string>

#include "generator/argparse.h"
#include "generator/generator.h"
#include "generator/presets.h"

namespace lockstep {

/// The command line of one of AICB's scripts (megatron_workload_with_aiob.sh, megatron_gpt.sh,
/// deepspeed_llama.sh), read as that shell script reads it: only the spellings it knows, values
/// only as the next word, everything from the first unknown word on ignored; then the preset over
/// the user's values. Models go by our names, too; an unknown one is the default one, which
/// `warnings` tells. What the scripts ask their machine for,
/// the GPUs of a node, is 8 unless --nproc_per_node says otherwise.
///
///   kMegatron   GPUs are --nnodes x --nproc_per_node; the batch is 2 dp micro_batch of the dp that
///               --world_size has, whatever --global_batch says, and 0 without it; there is no
///               flag to recompute
///   kDeepSpeed  8 GPUs, one sequence batch each; --max_live_parameters has no effect,
///               --contiguous_gradients swallows the word after it
///
/// ERRORS: a value that is missing or wrong.
ArgValues script_flags(PresetFamily family, std::span<const std::string> words,
                       Warnings* warnings = nullptr);

/// The flags of a training generator: its own, or with request.script_compat its script's.
/// ERRORS: those of parse_args(), apply_preset() and script_flags().
ArgValues training_flags(const GenerateRequest& request, PresetFamily family,
                         Warnings* warnings = nullptr);

}  // namespace lockstep
