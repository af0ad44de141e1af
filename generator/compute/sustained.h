#pragma once

#include <string_view>

#include "generator/compute/gpu_spec.h"

namespace lockstep {

/// What is left of a GPU's rates hour after hour: at its power limit the clock falls below that of
/// data sheets and of short benchmarks, and kernels follow each other with other data in the cache.
struct SustainedRates {
  double matrix = 1;   ///< share of the matrix units' peak, in 16 and 32 bits
  double matrix8 = 1;  ///< and in 8 bits
  double memory = 1;   ///< share of the memory's bandwidth, and of what SMs put through beside it
  std::string_view basis;
};

/// Calibrated on the odd rows of published training steps, and scored on the even ones
/// (docs/models.md, "Published step times"):
///
///                   matrix  matrix8  memory   odd rows of
///     A100, A800     0.90      -      0.60    vTrain, one node
///     H100, H800     0.70     1       0.91    llm-foundry's H100s, Megatron-Bridge's 163, dgxc's
///     H200                                    389 (bf16), MLPerf 427 (fp8)
///     B200, GB200    0.55     0.90    0.91    dgxc 383 (bf16), Megatron-Bridge 167 (fp8)
///     B300, GB300    0.60     1       0.91    Megatron-Bridge 159, 247, 153, 165 (fp8)
///
/// What is bound by memory was timed under load (memory_efficiency.h), products of the same jobs
/// ran at 0.77 of the cold ones: that published steps leave 0.70 is taken for what frameworks add,
/// 0.70 / 0.77 = 0.91, to all operators alike, so that memory's share is no number of its own (on
/// the rows above anything from 0.85 to 1 fits as well). 1 for fp8 on Hopper was set, not fitted:
/// its matrix products were timed with random data and hot (gemm_efficiency.h), those of bf16 short
/// and cold. The H20, whose matrix units are cut to a seventh, is not short of power: the memory's
/// share alone. Of the B300's 16 bits no row says anything but through the attention of fp8 jobs.
/// Volta and CDNA 3: 1, not measured.
SustainedRates sustained_rates(const GpuSpec& gpu);

/// The GPU with those rates.
GpuSpec under_load(const GpuSpec& gpu);

}  // namespace lockstep
