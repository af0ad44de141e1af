#include <algorithm>

#include "generator/exact/schedule.h"

namespace lockstep {
namespace {

/// Some forward passes to fill the pipeline, then one forward and one backward pass in turn, then
/// the backward passes that are left. Which pass is the k-th forward one: with one chunk,
/// microbatch k; else groups of pp microbatches pass chunk after chunk, and backward the chunks
/// the other way round. Forward passes before the first backward one on stage s:
///
///     one chunk       pp - 1 - s
///     vpp chunks      2 (pp - 1 - s) + (vpp - 1) pp
///
/// Narayanan et al., SC'21, section 2.2 (figure 4; bubble (pp - 1) / (vpp microbatches) of the
/// work); the numbers as in Megatron Core, schedules.py.
std::vector<PipelineSlot> order(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t total = shape.microbatches * shape.vpp;
  std::int64_t ahead = shape.pp - 1 - stage;
  if (shape.vpp > 1) {
    ahead = 2 * ahead + (shape.vpp - 1) * shape.pp;
  }
  ahead = std::min(ahead, total);
  const auto pass = [&](std::int64_t k, bool backward) {
    if (shape.vpp == 1) {
      return PipelineSlot{backward, 0, static_cast<std::int32_t>(k)};
    }
    const std::int64_t round = k / (shape.pp * shape.vpp), place = k % (shape.pp * shape.vpp);
    const std::int64_t chunk = place / shape.pp;
    return PipelineSlot{backward,
                        static_cast<std::int32_t>(backward ? shape.vpp - 1 - chunk : chunk),
                        static_cast<std::int32_t>(round * shape.pp + place % shape.pp)};
  };
  std::vector<PipelineSlot> slots;
  for (std::int64_t k = 0; k < ahead; ++k) {
    slots.push_back(pass(k, false));
  }
  for (std::int64_t k = ahead; k < total; ++k) {
    slots.push_back(pass(k, false));
    slots.push_back(pass(k - ahead, true));
  }
  for (std::int64_t k = total - ahead; k < total; ++k) {
    slots.push_back(pass(k, true));
  }
  return slots;
}

}  // namespace

extern const PipelineSchedule kOneFOneBPipelineSchedule;
const PipelineSchedule kOneFOneBPipelineSchedule{
    "1f1b", "one forward, one backward; interleaved where vpp > 1 (Megatron's)", order};

}  // namespace lockstep
