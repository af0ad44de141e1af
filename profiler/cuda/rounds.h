#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "profiler/cuda/timer.h"

namespace lockstep::cuda {

/// An operator of a step, ready to run, and how often it runs there.
struct RoundPart {
  Launch launch;
  std::int64_t times = 1;
};

/// Runs the parts by turns, as they follow each other, in rounds: what a step has most often once a
/// round, the others in as many rounds as is their share, 5 at least. So the GPU's power, and with
/// it the clock, is that of the step, and a part finds little of its operands in the L2 cache.
/// Returns the last `samples` runs of each part, in seconds; `meanwhile` is called while the GPU is
/// at the last rounds. Takes one to two seconds, or as long as `samples` rounds.
/// ERRORS: what the launches and kernels report.
std::vector<std::vector<double>> time_rounds(Timer& timer, std::span<const RoundPart> parts,
                                             int samples, const std::function<void()>& meanwhile);

}  // namespace lockstep::cuda
