#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

/// What one GPU does at a time, for costing: a matrix product, an attention kernel, or something
/// bound by memory. Sizes are those of one rank, one microbatch.
enum class OperatorKind : std::uint8_t { kGemm, kGroupedGemm, kAttention, kMemory };

/// Which kernels compute attention without keeping scores.
enum class FlashKernels : std::uint8_t {
  kNewest,  ///< the best that a GPU's family has (compute/roofline.h)
  kFirst,   ///< FlashAttention (Dao et al. 2022), in CUDA or Triton: what ran until summer 2023
};

struct Operator {
  std::string name;  ///< "attention.qkv forward"
  OperatorKind kind = OperatorKind::kMemory;
  /// kGemm: (m x k) (k x n). kGroupedGemm: `groups` of them, m rows each.
  std::int64_t m = 0, n = 0, k = 0, groups = 1;
  /// kAttention: batch, heads, query and key lengths, head sizes; causal halves the work.
  std::int64_t batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0, head_dim = 0,
               value_dim = 0;
  bool causal = false, backward = false;
  bool fused = true;  ///< kAttention: one kernel that keeps no scores, else one for each step
  FlashKernels flash_kernels = FlashKernels::kNewest;  ///< kAttention, fused: which ones
  double flops = 0;                                    ///< arithmetic it must do
  double bytes = 0;                                    ///< memory traffic it must do
  int element_bytes = 2;
};

}  // namespace lockstep
