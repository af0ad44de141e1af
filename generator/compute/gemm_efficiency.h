#pragma once

#include <cstdint>
#include <string_view>

#include "base/units.h"
#include "generator/compute/gpu_spec.h"

namespace lockstep {

/// A batch of equal matrix products, (m x k) (k x n) each. All sizes at least 1.
struct GemmShape {
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
};

/// What keeps a family's matrix products from their peak. With u = batch ⌈m/128⌉ ⌈n/128⌉ / SMs
/// tiles for each SM, the kernel takes
///
///     t = launch + depth k + w 2·128²k SMs / (compute peak)
///         + input e batch (m+n) k / B + output e batch m n / B
///     w = ⌈u⌉ if u > 1, else max(u, fill)
///
/// where B is the memory bandwidth and e the bytes of an element. The terms are: starting the
/// kernel and filling its pipeline; the latency of a step along k, whatever the width; whole waves
/// of tiles over the SMs, where a part of a wave costs a wave, and a single one can use idle SMs by
/// cutting k or the tiles as far as `fill`; and reading and writing that is not hidden behind
/// arithmetic (below 1, mostly in cache). The form is ours; quantisation by tiles and waves:
/// NVIDIA, "Matrix Multiplication Background User's Guide".
struct GemmEfficiency {
  Time launch;
  double depth_ns = 0;  ///< ns for each element of k
  double compute = 1;   ///< share of peak that a full wave reaches
  double input = 0, output = 0;
  double fill = 1;         ///< the least share of a wave's time
  std::string_view basis;  ///< which measurements it was fitted on
};

/// Parameters of a GPU's family and precision; those of the nearest measured family where there is
/// no measurement (`basis` says so). Rows of half and eight bits share all but launch and compute.
const GemmEfficiency& gemm_efficiency(GpuFamily family, Precision precision);

/// The formula above, never less than launch + bytes of the three matrices / (0.9 B). Does not fall
/// when a size grows, without exception: every term is monotone, the ceilings included.
///
/// ERRORS: a precision the GPU has not; a size below 1; a time beyond the clock's 106 days.
Time gemm_time(const GemmShape& shape, const GpuSpec& gpu, Precision precision);

/// The same with other parameters: a fit in progress, or one of a single GPU.
Time gemm_time(const GemmShape& shape, const GpuSpec& gpu, Precision precision,
               const GemmEfficiency& fit);

/// Bytes of an element of a matrix in that precision.
int element_bytes(Precision precision);

/// The share of the bandwidth of data sheets that a kernel bound by memory reaches: 0.9, about what
/// BabelStream's copy and triad get on HBM GPUs.
inline constexpr double kMemoryEfficiency = 0.9;

}  // namespace lockstep
