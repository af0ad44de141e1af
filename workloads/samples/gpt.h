#pragma once

#include <cstdint>

#include "workloads/workload.h"

namespace lockstep::samples {

/// A decoder-only transformer and how it is trained, with Megatron's tensor and sequence
/// parallelism: tp ranks share each matrix and, between the matrices, the sequence.
struct GptShape {
  std::int64_t hidden, layers, ffn, vocab, sequence;
  std::int64_t kv_hidden;  ///< width of keys and of values: hidden without GQA
  std::int64_t tp, dp;     ///< gpus = tp * dp
  std::int64_t micro_batch, microbatches;
  std::int64_t experts = 0, top_k = 0;  ///< 0: dense. Experts are gated (three matrices)
  std::int64_t ep = 1;

  std::int64_t tokens() const { return micro_batch * sequence; }
  /// One activation of the whole sequence in BF16.
  Bytes activation() const { return Bytes(2 * tokens() * hidden); }
};

/// Time of `flops` on an H100 SXM at 45 % of its dense BF16 peak of 989.4 TFLOP/s: 445,230
/// operations a nanosecond. Nearest nanosecond.
Time compute_time(std::int64_t flops);

/// Of one rank and microbatch, forward: 2 m n k of each matrix product; the attention core's two
/// products at half, for the causal mask.
struct GptFlops {
  explicit GptFlops(const GptShape& shape);
  std::int64_t qkv, core, projection, up, down, logits;
};

/// One training step as a layer table. Backward times: each matrix product costs its forward time
/// twice, once for the input's and once for the weights' gradient; the attention core 5/2 of its
/// forward time (FlashAttention multiplies five times instead of twice).
WorkloadJob gpt_job(std::string name, const GptShape& shape);

}  // namespace lockstep::samples
