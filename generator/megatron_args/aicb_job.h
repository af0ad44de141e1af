#pragma once

#include <string>
#include <vector>

#include "base/warnings.h"
#include "generator/generator.h"
#include "generator/megatron_args/megatron_launch.h"

namespace lockstep {

/// A job that AICB's training flags describe, in other words.
struct AicbJob {
  MegatronLaunch launch;           ///< model and cut, as flags of Megatron-LM
  std::vector<std::string> words;  ///< the GPUs and their type; then what AICB has no flag for
  std::string name;                ///< --model_name; empty: none
  Warnings warnings;               ///< flags of AICB's that a whole step of all ranks does not heed
};

/// Whether a generator writes a training step, and so has a script's flags: simai-training,
/// megatron, deepspeed12 and deepspeed3.
bool trains(const Generator& generator);

/// The job behind the flags of AICB's simai-training, megatron, deepspeed12 and deepspeed3, for a
/// step that is not AICB's (`generate --generator NAME --flavour exact`). Presets and defaults are
/// AICB's. What its flags leave open is as its frames have it:
///
///   frame Megatron   a GPT: LayerNorm, learned positions, tied embedding; with --swiglu, and of
///                    DeepSpeed always, a Llama: RMSNorm, gated MLP, rotary positions, not tied
///   frame DeepSeek   latent attention, --n_dense_layers dense layers, then experts beside
///                    --n_shared_expert shared ones; all of width --ffn_hidden_size
///   DeepSpeed        --stage 1 is the distributed optimizer, 2 and 3 shard gradients and
///                    parameters; gradients are reduced while the backward pass runs
///
/// --context_parallel_size, --use_flash_attn and --overlap_grad_reduce, which AICB accepts and
/// ignores, count here.
///
/// ERRORS: those of training_flags() and training_args(); a generator without a training step.
AicbJob aicb_job(const Generator& generator, const GenerateRequest& request);

}  // namespace lockstep
