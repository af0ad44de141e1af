#include <algorithm>

#include "generator/exact/schedule.h"

namespace lockstep {
namespace {

/// One forward, one backward, with the backward pass split: the gradient of the input goes on to
/// the stage before at once; the weights' follows s passes later on stage s, and at the end what is
/// left fills the bubble. So every stage keeps the activations of at most pp microbatches, as the
/// first one does in 1F1B.
///
///     bubble = (pp - 1) (F + B - W)     F, B, W: forward pass, gradient of input and of weights
///
/// Qi et al., Zero Bubble Pipeline Parallelism (2023), section 2.3 (ZB-H1) and table 1.
std::vector<PipelineSlot> order(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t ahead = std::min(shape.pp - 1 - stage, shape.microbatches);
  const auto slot = [](BackwardPart part, bool backward, std::int64_t microbatch) {
    return PipelineSlot{backward, 0, static_cast<std::int32_t>(microbatch), part};
  };
  std::vector<PipelineSlot> slots;
  for (std::int64_t i = 0; i < ahead; ++i) {
    slots.push_back(slot(BackwardPart::kWhole, false, i));
  }
  for (std::int64_t i = 0; i < shape.microbatches; ++i) {
    if (i + ahead < shape.microbatches) {
      slots.push_back(slot(BackwardPart::kWhole, false, i + ahead));
    }
    slots.push_back(slot(BackwardPart::kInput, true, i));
    if (i >= stage) {
      slots.push_back(slot(BackwardPart::kWeights, true, i - stage));
    }
  }
  for (std::int64_t i = std::max<std::int64_t>(0, shape.microbatches - stage);
       i < shape.microbatches; ++i) {
    slots.push_back(slot(BackwardPart::kWeights, true, i));
  }
  return slots;
}

}  // namespace

extern const PipelineSchedule kZbH1PipelineSchedule;
const PipelineSchedule kZbH1PipelineSchedule{
    .name = "zb-h1",
    .summary = "1f1b with the weights' gradients put off (zero bubble, ZB-H1)",
    .order = order,
    .one_chunk = true,
    .splits_backward = true};

}  // namespace lockstep
