#pragma once

#include "base/units.h"
#include "generator/compute/roofline.h"
#include "profiler/kernel.h"

namespace lockstep {

/// What a kernel has to do at least, and what it holds meanwhile.
struct KernelCost {
  double flops = 0;  ///< of products and attention (masked scores left out); 0: bound by memory
  double bytes = 0;  ///< operands read and results written once each
  Bytes footprint;   ///< operands and results of one call, workspace excluded
};

/// Of products: 2 m n k operations; operands in the kernel's precision, results in 16 bits (fp32:
/// 32), a weight's gradient added to in fp32. Of attention: 2 (head_dim + value_dim) operations a
/// head, query and key, half of them with a causal mask; backward 2.5 times that, unfused 2 times
/// (Dao 2023, section 3.1). What is bound by memory as in generator/exact/operators.h; Adam reads
/// gradient, fp32 parameter and both moments and writes the latter three.
/// ERRORS: a footprint beyond 64 bits.
KernelCost kernel_cost(const Kernel& kernel);

/// The same of fused attention, for attention_time(). PRECONDITION: that kind.
AttentionWork attention_work(const Kernel& kernel);

/// Bytes of an element that is no operand of a product: 4 in fp32, else 2.
std::int64_t activation_bytes(Precision precision);

}  // namespace lockstep
