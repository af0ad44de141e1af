#pragma once

#include <string_view>

#include "generator/compute/gpu_spec.h"

namespace lockstep {

/// What is left of a GPU's rates hour after hour: at its power limit the clock falls below that of
/// data sheets and of short benchmarks, and kernels follow each other with other data in the cache.
struct SustainedRates {
  double matrix = 1;  ///< share of the matrix units' peak
  double memory = 1;  ///< share of the memory's bandwidth
  std::string_view basis;
};

/// Calibrated on the odd rows of published training steps, where there are any (docs/models.md); 1
/// elsewhere.
const SustainedRates& sustained_rates(GpuFamily family);

/// The GPU with those rates.
GpuSpec under_load(const GpuSpec& gpu);

}  // namespace lockstep
