#pragma once

#include <cstdint>
#include <vector>

#include "profiler/kernel.h"

namespace lockstep {

/// The shapes of a sweep: a layer of each width, sequence, microbatch and tensor-parallel cut.
struct SweepGrid {
  std::vector<std::int64_t> hidden{2048, 4096, 8192};
  std::vector<std::int64_t> sequence{1024, 2048, 4096};
  std::vector<std::int64_t> micro_batch{1, 2, 4};
  std::vector<std::int64_t> tp{1, 2, 4, 8};
  std::int64_t head_dim = 128;
};

/// For every point whose heads divide by tp: the four products of a layer with an MLP four times as
/// wide (forward, and both gradients), fused causal attention and a norm (both passes), in bf16.
/// Each kernel once, in order of the grid.
std::vector<Kernel> sweep_kernels(const SweepGrid& grid);

}  // namespace lockstep
