#pragma once

#include "profiler/cuda/gemm.h"

namespace lockstep::cuda {

/// One of our own kernels with its tensors, ready to run. Those over a single long vector (Adam,
/// gradients, streams) go through it in pieces of at most 2^28 elements, over and over the same
/// memory: the traffic is that of the whole vector.
/// ERRORS: a size that the kernel does not take; not enough memory.
Gemm::Plan plan_fused_kernel(const Kernel& kernel, Timer& timer, std::int64_t* held);

}  // namespace lockstep::cuda
