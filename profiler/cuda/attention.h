#pragma once

#include <memory>
#include <string>

#include "profiler/cuda/gemm.h"

namespace lockstep::cuda {

/// Fused attention by cuDNN's graphs: flash attention forward and backward, grouped heads, causal
/// masks, other widths of values than of queries (latent attention). Tensors lie batch by sequence
/// by head by feature, as Megatron's do but for the batch.
class FusedAttention {
 public:
  virtual ~FusedAttention() = default;
  /// Its tensors are q, k, v, o, the rows' log-sums, and backward do, dq, dk and dv; null: not
  /// there. With `search` the library's plans are timed and the fastest is taken, else its first.
  /// ERRORS: Error with cuDNN's reason if it has no engine for the shape.
  virtual Gemm::Plan plan(const Kernel& kernel, bool search, Timer& timer, std::int64_t* held) = 0;
  virtual std::string version() const = 0;
};

/// ERRORS: ExitCode::kMissingPart: this build has no cuDNN, or it cannot be started.
std::unique_ptr<FusedAttention> make_fused_attention();
bool has_fused_attention();

/// Product, softmax, product; backward four products and the softmax's gradient. Keys and values of
/// grouped heads are taken as if each head had its own.
Gemm::Plan plan_unfused_attention(Gemm& gemm, const Kernel& kernel, Timer& timer,
                                  std::int64_t* held, bool search);

}  // namespace lockstep::cuda
