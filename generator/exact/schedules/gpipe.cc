#include "generator/exact/schedule.h"

namespace lockstep {
namespace {

/// All forward passes, chunk by chunk, then all backward passes, from the last chunk.
/// Huang et al., GPipe (2019); bubble (pp - 1) / microbatches of the work.
std::vector<PipelineSlot> order(const PipelineShape& shape, std::int64_t) {
  std::vector<PipelineSlot> slots;
  for (std::int64_t chunk = 0; chunk < shape.vpp; ++chunk) {
    for (std::int64_t i = 0; i < shape.microbatches; ++i) {
      slots.push_back({false, static_cast<std::int32_t>(chunk), static_cast<std::int32_t>(i)});
    }
  }
  for (std::int64_t chunk = shape.vpp; chunk-- > 0;) {
    for (std::int64_t i = 0; i < shape.microbatches; ++i) {
      slots.push_back({true, static_cast<std::int32_t>(chunk), static_cast<std::int32_t>(i)});
    }
  }
  return slots;
}

}  // namespace

extern const PipelineSchedule kGpipePipelineSchedule;
const PipelineSchedule kGpipePipelineSchedule{
    "gpipe", "all forward passes, then all backward passes", order};

}  // namespace lockstep
