#pragma once

#include <string_view>

#include "base/units.h"
#include "generator/compute/gpu_spec.h"
#include "generator/exact/operator.h"

namespace lockstep {

/// How near to peak a family's fused attention kernels get on long sequences, head size 128.
struct AttentionEfficiency {
  double forward = 0, backward = 0;
  /// Work of the softmax and of masked parts of tiles, in keys a query.
  double extra_keys = 0;
  std::string_view source;
};
/// Families of which no figure of the first kernels is known have their newest ones.
const AttentionEfficiency& attention_efficiency(GpuFamily family,
                                                FlashKernels kernels = FlashKernels::kNewest);

/// Time of one operator on one GPU that does nothing else.
///
///   matrix product    gemm_time() of `groups` products, never less than the memory bound of
///   `bytes` attention         launch + max((flops + extra_keys · work of a key) / (efficiency ·
///   peak),
///                     bytes / (0.9 B)); `flops` says what causality, a window or a ring leave
///                     not fused: the products (2, backward 4) and launch + bytes / (0.9 B) of
///                     softmax and dropout
///   memory            launch + max(bytes / (0.9 B), flops / (compute efficiency · peak))
///
/// The launch of what is no matrix product takes 3 us (assumed: a kernel's start and end on an
/// otherwise idle GPU, the host running ahead). Arithmetic is in `precision`; in an fp8 job only
/// where elements have one byte, else in bf16. An operator without work takes no time. Does not
/// fall when a size, `flops` or `bytes` grows from above 0.
///
/// ERRORS: negative or non-finite sizes, flops or bytes; a precision the GPU has not; a time beyond
/// the clock's 106 days.
Time operator_time(const Operator& op, const GpuSpec& gpu, Precision precision);

/// The precision an operator of such a job runs in (see above).
Precision precision_of(const Operator& op, Precision job);

}  // namespace lockstep
