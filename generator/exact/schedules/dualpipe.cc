#include <algorithm>
#include <deque>

#include "generator/exact/schedule.h"

namespace lockstep {
namespace {

/// Writes the order of one stage. `near` is the direction whose first stage is nearer, or for the
/// second half of the stages the other one; seen from its own end, each half does the same.
class Writer {
 public:
  explicit Writer(bool second_half) : second_half_(second_half) {}

  void forward(int direction, bool beside_next = false) {
    slots_.push_back(
        {false, chunk(direction), forward_[direction]++, BackwardPart::kWhole, beside_next});
  }
  void backward(int direction, BackwardPart part) {
    const std::int32_t microbatch = backward_[direction]++;
    slots_.push_back({true, chunk(direction), microbatch, part});
    if (part == BackwardPart::kInput) {
      left_.push_back({true, chunk(direction), microbatch, BackwardPart::kWeights});
    }
  }
  /// The weights' gradients that have waited longest.
  void weights() {
    slots_.push_back(left_.front());
    left_.pop_front();
  }
  void both(int forward_direction, int backward_direction) {
    forward(forward_direction, true);
    backward(backward_direction, BackwardPart::kWhole);
  }

  std::vector<PipelineSlot> take() { return std::move(slots_); }

 private:
  std::int32_t chunk(int direction) const { return second_half_ ? 1 - direction : direction; }

  bool second_half_;
  std::int32_t forward_[2] = {0, 0}, backward_[2] = {0, 0};
  std::deque<PipelineSlot> left_;
  std::vector<PipelineSlot> slots_;
};

/// Microbatches enter the pipeline from both ends: chunk 0 of each stage belongs to those that go
/// from the first stage to the last, chunk 1 to the others, and half of the microbatches go each
/// way. In the middle of the step a forward and a backward pass of opposite directions run side by
/// side, each hiding the other's transfers.
///
///     bubble = (pp/2 - 1) (F&B + B - 3 W)     F&B: both side by side; B: whole backward pass
///
/// DeepSeek-V3 technical report (arXiv:2412.19437), section 3.2.1, figure 5 and table 2, for the
/// numbers of the passes in each phase.
std::vector<PipelineSlot> order(const PipelineShape& shape, std::int64_t stage) {
  constexpr auto kWhole = BackwardPart::kWhole, kInput = BackwardPart::kInput;
  const std::int64_t half = shape.pp / 2, each_way = shape.microbatches / 2;
  const std::int64_t depth = std::min(stage, shape.pp - 1 - stage);  // from the nearer end
  const std::int64_t inner = half - depth - 1;                       // stages to the middle
  Writer out(stage >= half);
  for (std::int64_t i = 0; i < 2 * inner; ++i) {
    out.forward(0);
  }
  for (std::int64_t i = 0; i <= depth; ++i) {
    out.forward(0);
    out.forward(1);
  }
  for (std::int64_t i = 0; i < inner; ++i) {
    out.backward(1, kInput);
    out.weights();
    out.forward(1);
  }
  for (std::int64_t i = 0; i < each_way - shape.pp + depth + 1; ++i) {
    if (i == 0 && inner == 0) {  // the two middle stages have nothing to hide yet
      out.forward(0);
      out.backward(1, kWhole);
    } else {
      out.both(0, 1);
    }
    out.both(1, 0);
  }
  for (std::int64_t i = 0; i < inner; ++i) {
    out.backward(1, kWhole);
    out.both(1, 0);
  }
  bool split = false;
  for (std::int64_t i = 0; i <= depth; ++i) {
    split = split || (i == (depth + 1) / 2 && depth % 2 == 1);
    out.backward(1, split ? kInput : kWhole);
    split = split || (i == (depth + 1) / 2 && depth % 2 == 0);
    out.backward(0, split ? kInput : kWhole);
  }
  for (std::int64_t i = 0; i < inner; ++i) {
    out.weights();
    out.backward(0, kInput);
  }
  for (std::int64_t i = 0; i <= depth; ++i) {
    out.weights();
  }
  return out.take();
}

}  // namespace

extern const PipelineSchedule kDualpipePipelineSchedule;
const PipelineSchedule kDualpipePipelineSchedule{
    .name = "dualpipe",
    .summary = "from both ends at once, passes side by side (DeepSeek's DualPipe)",
    .order = order,
    .one_chunk = true,
    .splits_backward = true,
    .bidirectional = true,
    .side_by_side = true};

}  // namespace lockstep
