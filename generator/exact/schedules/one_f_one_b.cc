#include "generator/exact/pass_order.h"
#include "generator/exact/schedule.h"

namespace lockstep {
namespace {

/// Forward passes before the first backward one on stage s:
///
///     one chunk       pp - 1 - s
///     vpp chunks      2 (pp - 1 - s) + (vpp - 1) pp
///
/// Narayanan et al., SC'21, section 2.2 (bubble (pp - 1) / (vpp microbatches) of the work); the
/// numbers as in Megatron Core, schedules.py.
std::vector<PipelineSlot> order(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t behind = shape.pp - 1 - stage;
  return one_forward_one_backward(
      shape, shape.vpp > 1 ? 2 * behind + (shape.vpp - 1) * shape.pp : behind, false);
}

}  // namespace

extern const PipelineSchedule kOneFOneBPipelineSchedule;
const PipelineSchedule kOneFOneBPipelineSchedule{
    "1f1b", "one forward, one backward; interleaved where vpp > 1 (Megatron's)", order};

}  // namespace lockstep
