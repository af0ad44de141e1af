#pragma once

#include <string>

#include "base/warnings.h"
#include "generator/argparse.h"
#include "generator/count.h"

namespace lockstep {

/// The flags of AICB's training and test generators: one table for all of them, as in AICB.
const ArgTable& training_flag_table();

/// A training job as AICB sees it: flags and what it derives from them. Sizes are in elements,
/// buckets and thresholds of DeepSpeed too; message sizes of the collective tests in bytes.
struct TrainingArgs {
  std::string frame;       ///< Megatron, DeepSpeed, collective_test, DeepSeek
  std::string gpu_type;    ///< "None" if not given, as AICB prints it
  std::string model_name;  ///< likewise
  std::string dtype, test_comm, comp_filepath;

  Count world_size, tp, pp, ep;
  Count dp;  ///< world_size / (tp pp)
  std::int64_t pp_rank = -1;
  Count global_batch, micro_batch, epochs;
  Count microbatches;  ///< global_batch / (dp micro_batch): 0 for a batch that is too small
  Count layers;        ///< of one pipeline stage
  Count lost_layers;   ///< the remainder, in no stage
  Count hidden, ffn, heads, seq, vocab;
  Count padded_vocab;  ///< smallest multiple of make_vocab_size_divisible_by x tp not below vocab
  bool bias = false, flash = false, swiglu = false, sequence_parallel = false;
  bool distributed_optimizer = false, recompute = false, computation = false;
  bool workload_only = false, aiob = false;

  bool moe = false, grouped_gemm = false;
  Count experts, topk;
  Count dense_layers, shared_experts;  ///< DeepSeek
  Count rope_dim, nope_dim, q_lora, kv_lora, v_dim;

  Count stage;  ///< of ZeRO
  bool amp = false, contiguous_gradients = false;
  Count reduce_bucket, allgather_bucket;
  Count param_persistence, model_persistence, max_live, prefetch_bucket;

  Count begin_size, end_size, iterations;
  bool multi_all_reduce = false;
};

/// Derives a job from flags, with AICB's rules (specification section 2.1, in its order).
/// ERRORS: Error naming the broken rule, the flag and the nearest values that work.
TrainingArgs training_args(const ArgValues& flags);

/// Tells what AICB drops without a word: layers that no stage gets, sequences that fill no
/// microbatch; all layers, if there is no microbatch.
void warn_of_losses(const TrainingArgs& args, Warnings& warnings);

/// Sizes of a tensor of one microbatch's activations, in bytes of a 2-byte type: 2 b s h.
Count activation_bytes(const TrainingArgs& args);

}  // namespace lockstep
