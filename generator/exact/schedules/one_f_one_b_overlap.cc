#include "generator/exact/pass_order.h"
#include "generator/exact/schedule.h"

namespace lockstep {
namespace {

/// 1F1B whose two passes of a turn, of different microbatches, run side by side, so that one's
/// dispatch and combine of experts run while the other computes: Megatron Core's
/// --overlap-moe-expert-parallel-comm (combined_1f1b.py, which asks for vpp > 1 where pp > 1).
/// Forward passes before the first backward one on stage s, one more than interleaved 1F1B has:
///
///     2 (pp - 1 - s) + (vpp - 1) pp + 1
///
/// since a gradient takes the time of both passes to get through a stage. The bubble is that of
/// 1F1B, (pp - 1) (F + B) / vpp, what is kept up to 2 pp passes on the first stage (vpp = 1).
std::vector<PipelineSlot> order(const PipelineShape& shape, std::int64_t stage) {
  return one_forward_one_backward(
      shape, 2 * (shape.pp - 1 - stage) + (shape.vpp - 1) * shape.pp + 1, true);
}

}  // namespace

extern const PipelineSchedule kOneFOneBOverlapPipelineSchedule;
const PipelineSchedule kOneFOneBOverlapPipelineSchedule{
    .name = "1f1b-overlap",
    .summary =
        "1f1b, forward and backward passes side by side (Megatron's overlap of experts' "
        "transfers)",
    .order = order,
    .side_by_side = true};

}  // namespace lockstep
