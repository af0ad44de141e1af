#pragma once

#include "base/warnings.h"
#include "generator/argparse.h"
#include "generator/megatron_args/megatron_launch.h"
#include "generator/model/expression.h"
#include "generator/model/model.h"

namespace lockstep {

/// The flags of a job (job_flags()) that a launch of Megatron-LM sets, wherever `args` has none:
/// what the user gave stays, and what it replaces is not even read. Flags that are known but not
/// modelled are warned about.
///
///   GPUs          nodes x processes a node of torchrun, or what mpirun, srun or deepspeed is told
///   precision     --bf16, --fp16, --fp8-format; none of them: fp32 (Megatron-LM, arguments.py)
///   sharding      --use-distributed-optimizer: ZeRO-1; with --use-torch-fsdp2 or
///                 --use-megatron-fsdp what --data-parallel-sharding-strategy says
///   overlap       as --overlap-grad-reduce and --overlap-param-gather say: none unless given
///   batch         without --global-batch-size one microbatch for each data-parallel rank
///   dropout       0.1 unless --attention-dropout and --hidden-dropout say 0
///
/// ERRORS: with file, line and flag: a value that is not known or wrong.
void apply_megatron_job(const MegatronLaunch& launch, ArgValues& args, Warnings& warnings);

/// The GPT that a launch of Megatron-LM builds (megatron.yaml), with Megatron's defaults: MLP of 4
/// hidden (8/3, down to a multiple of 64, with --swiglu), heads of hidden / heads, biases unless
/// --disable-bias-linear, LayerNorm, learned positions, a tied head, top-2 routing. Which layers
/// have experts is --moe-layer-freq. `given` replaces variables of megatron.yaml, and the flags
/// behind them are not read. The vocabulary is --vocab-size (one more with the NullTokenizer, which
/// adds an end-of-document token) or the tokenizer's, where its type tells.
///
/// ERRORS: with file, line and flag: --num-layers, --hidden-size, --num-attention-heads or the
/// vocabulary missing; a value that is not known or wrong; a program for models that are no GPTs.
Model megatron_model(const MegatronLaunch& launch, const Variables& given);

/// "--lr, --save": what of a launch neither of the two above read; empty: nothing.
std::string unread_flags(const MegatronLaunch& launch);

}  // namespace lockstep
