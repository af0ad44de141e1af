#pragma once

#include <string_view>

#include "base/units.h"
#include "generator/compute/gpu_spec.h"
#include "generator/exact/operator.h"

namespace lockstep {

/// One way through fused attention.
struct AttentionPass {
  double share = 0;  ///< of peak, with many heads and long sequences, head size 128
  /// What a thread block takes for each of the keys that its queries see, one after the other: with
  /// few heads nothing hides it. 0: not known.
  double key_s = 0;
  /// Work of the softmax and of masked parts of tiles, in keys a query.
  double extra_keys = 150;
};
struct AttentionEfficiency {
  AttentionPass forward, backward;
  std::string_view source;
};
/// Families of which no figure of the first kernels is known have their newest ones.
const AttentionEfficiency& attention_efficiency(GpuFamily family,
                                                FlashKernels kernels = FlashKernels::kNewest);

/// Time of one operator on one GPU that does nothing else.
///
///   matrix product    gemm_time() of `groups` products, never less than the memory bound of
///                     `bytes`
///   attention         attention_time(); `flops` says what causality, a window or a ring leave
///                     not fused: the products (2, backward 4) and launch + bytes / (0.9 B) of
///                     softmax and dropout
///   memory            memory_time() of its bytes, or launch + flops / (compute efficiency · peak)
///
/// The launch of attention takes 5 us, as that of what streams through memory. Arithmetic is in
/// `precision`; in an fp8 job only where elements have one byte, else in bf16. An operator without
/// work takes no time. Does not fall when a size, `flops` or `bytes` grows from above 0.
///
/// ERRORS: negative or non-finite sizes, flops or bytes; a precision the GPU has not; a time beyond
/// the clock's 106 days.
Time operator_time(const Operator& op, const GpuSpec& gpu, Precision precision);

/// What fused attention has to do.
struct AttentionWork {
  double flops = 0, bytes = 0;
  double key_flops = 0;  ///< of one key for all queries
  double keys = 0;       ///< of a query that sees all
  bool backward = false;
};
/// AttentionWork::key_flops of so many queries over batch and heads, `width` the sum of the sizes
/// of query and value: two products, and backward five of half the size (Dao 2023, section 3.1).
double attention_key_flops(double queries, double width, bool backward);
/// launch + max(bytes / (0.9 B), (a^1.2 + b^1.2)^(1/1.2)): a = (flops + extra_keys · key_flops) /
/// (share · peak) is the GPU's work, b = keys · key_s one thread block's; of the keys no more than
/// twice as many as a query sees on average.
Time attention_time(const AttentionWork& work, const GpuSpec& gpu, Precision precision,
                    const AttentionEfficiency& fit);

/// The precision an operator of such a job runs in (see above).
Precision precision_of(const Operator& op, Precision job);

}  // namespace lockstep
