#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

/// What one GPU does at a time, for costing: a matrix product, an attention kernel, or something
/// bound by memory. Sizes are those of one rank, one microbatch.
enum class OperatorKind : std::uint8_t { kGemm, kGroupedGemm, kAttention, kMemory };

/// What a kernel that is bound by memory does with its bytes, as far as it sets how near it comes
/// to the memory's bandwidth (compute/memory_efficiency.h).
enum class MemoryWork : std::uint8_t {
  kStream,      ///< one after the other, a few operations each: sums, casts, gated activations
  kOneWay,      ///< reads or writes alone: the gradients' norm and reset
  kUpdate,      ///< several long vectors at once: the optimizer, copies
  kLayerNorm,   ///< by rows, mean and variance; backward also sums over columns
  kRmsNorm,     ///< by rows, mean square; backward also sums over columns
  kActivation,  ///< a hyperbolic tangent each (GELU)
  kLoss,        ///< softmax over the vocabulary; backward one pass over the logits
  kEmbedding,   ///< rows of a table; backward adds to them
  kColumnSum,   ///< biases' gradients
  kPermute,     ///< tokens to experts' copies; backward the sum of the copies
  kUnpermute,   ///< weighted sums of experts' copies; backward their copies
  kRouter,      ///< softmax and top-k over experts
};

/// Their names in files, in that order.
inline constexpr std::array<std::string_view, 12> kMemoryWorkNames{
    "stream", "one-way",   "update",     "layer-norm", "rms-norm",  "activation",
    "loss",   "embedding", "column-sum", "permute",    "unpermute", "router"};

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
  MemoryWork memory_work = MemoryWork::kStream;        ///< kMemory: what it does with them
  int element_bytes = 2;
};

}  // namespace lockstep
