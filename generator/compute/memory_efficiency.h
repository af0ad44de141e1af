#pragma once

#include "base/units.h"
#include "generator/compute/gpu_spec.h"
#include "generator/exact/operator.h"

namespace lockstep {

/// How fast a kernel that is bound by memory gets its bytes through:
///
///     t = launch + bytes / min(share · B, rate · SMs / 132)
///
/// B is the memory's bandwidth; `rate` what the SMs of a Hopper are able to do where arithmetic,
/// atomic additions or dependent steps hold them up, taken to grow with their number.
struct MemoryEfficiency {
  Time launch;       ///< the kernel's start and end, and those of a second one that it may need
  double share = 1;  ///< of bandwidth
  double share_hbm3e = 1;  ///< of an HBM3e's: where bytes go both ways, less of it is reached
  double rate_Bps = 0;     ///< of 132 SMs; 0: the memory alone sets it
};

/// Our own kernels under load on an H200 and an H100, which differ in their memory alone; norms and
/// activations take 0.7 to 1.1 times PyTorch's (workloads/profiles): fitted (bench/fit_roofline.py)
/// on every second job of 161 and 72. Mean errors of shapes that none of those has: docs/models.md;
/// tests/cli/measured_kernels_test.cc. Other GPUs: taken over, HBM3e's share where they have it.
const MemoryEfficiency& memory_efficiency(MemoryWork work, bool backward);

/// The formula above. An operator without bytes takes no time.
Time memory_time(double bytes, MemoryWork work, bool backward, const GpuSpec& gpu);

}  // namespace lockstep
