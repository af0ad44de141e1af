#include "simulator/replay/simai_program.h"

#include <span>
#include <utility>
#include <vector>

#include "simulator/replay/parallel_groups.h"
#include "simulator/replay/simai_layers.h"

namespace lockstep {
namespace {

constexpr std::int32_t kComputeStream = 0;
constexpr Time kTick = Time::ns(1);

class Compiler {
 public:
  Compiler(const LayerTable& table, const std::vector<CommFamily>& families, bool strict)
      : table_(table), families_(families), strict_(strict), program_(streams(strict)) {}

  Program run(std::vector<LayerOps>& layers) {
    const std::size_t count = table_.layers.size();
    layers.assign(count, {});
    find_recomputations();
    type_ = OpType::kForward;
    for (std::size_t i = 0; i < count; ++i) {
      layers[i].forward = forward(i);
    }
    type_ = OpType::kBackward;
    for (std::size_t i = count; i-- > 0;) {
      recompute(i, layers);
      const Layer& layer = table_.layers[i];
      layers[i].input_grad.compute = compute(layer.input_grad.compute);
      layers[i].input_grad.comm =
          communicate(LayerColumn::kInputGrad, layer.input_grad, layer.update);
      tick();
      layers[i].weight_grad.compute = compute(layer.weight_grad.compute);
      layers[i].weight_grad.comm =
          communicate(LayerColumn::kWeightGrad, layer.weight_grad, layer.update);
      tick();
    }
    if (lead_ > Time()) {
      compute(Time());
    }
    program_.finish();
    return std::move(program_);
  }

 private:
  static std::vector<StreamOrder> streams(bool strict) {
    if (strict) {
      return {StreamOrder::kProgram, StreamOrder::kNewestFirst};
    }
    return std::vector<StreamOrder>(1 + 7, StreamOrder::kProgram);  // compute, one a GroupKind
  }

  void tick() { lead_ += strict_ ? kTick : Time(); }

  std::int32_t compute(Time duration) {
    ProgramOp op;
    op.lead = lead_;
    op.compute = duration;
    op.stream = kComputeStream;
    lead_ = Time();
    return last_ = add(op);
  }

  /// All but a weight gradient's is awaited.
  std::int32_t communicate(LayerColumn column, const LayerPhase& phase, Time update) {
    const auto family = static_cast<std::size_t>(phase.group);
    if (phase.comm == CommType::kNone || phase.bytes <= Bytes(0) ||
        families_[family].groups()[0].size() < 2) {
      return -1;
    }
    if (strict_ && phase.comm == CommType::kBroadcast) {
      return -1;  // SimAI takes it for no communication
    }
    ProgramOp op;
    op.compute = update;
    op.bytes = strict_ ? simai_bytes(column, phase.bytes) : phase.bytes;
    op.comm = phase.comm;
    op.family = static_cast<std::int32_t>(family);
    op.stream = strict_ ? 1 : 1 + op.family;
    const bool awaited = column != LayerColumn::kWeightGrad;
    const OpType pass = type_;
    type_ = awaited ? pass : OpType::kReduceGradients;
    const std::int32_t index = add(op);
    type_ = pass;
    if (awaited) {
      last_ = index;
    }
    return index;
  }

  std::int32_t add(ProgramOp op) {
    op.type = type_;
    if (last_ < 0) {
      return program_.add(op, {});
    }
    return program_.add(op, {&last_, 1});
  }

  LayerOps::Phase forward(std::size_t index) {
    const Layer& layer = table_.layers[index];
    const std::int32_t computed = compute(layer.forward.compute);
    const std::int32_t sent = communicate(LayerColumn::kForward, layer.forward, layer.update);
    tick();
    return {computed, sent};
  }

  /// For each layer the kept layer from which its recomputation starts; itself where there is none.
  void find_recomputations() {
    const std::size_t count = table_.layers.size();
    std::vector<char> kept(count, 0);
    for (const std::int32_t layer : listed(table_.checkpoints)) {
      kept[static_cast<std::size_t>(layer)] = 1;
    }
    recompute_from_.resize(count);
    std::vector<char> initiates(count, 0);
    for (const std::int32_t layer : listed(table_.checkpoint_initiates)) {
      initiates[static_cast<std::size_t>(layer)] = 1;
    }
    std::size_t nearest = 0;
    for (std::size_t i = 0; i < count; ++i) {
      nearest = kept[i] != 0 ? i : nearest;
      recompute_from_[i] = initiates[i] != 0 ? nearest : i;
    }
  }

  std::span<const std::int32_t> listed(std::span<const std::int32_t> layers) const {
    return strict_ ? simai_listed(layers) : layers;
  }

  void recompute(std::size_t index, std::vector<LayerOps>& layers) {
    for (std::size_t i = recompute_from_[index]; i < index; ++i) {
      layers[i].recomputed.push_back(forward(i));
    }
  }

  const LayerTable& table_;
  const std::vector<CommFamily>& families_;
  bool strict_;
  Program program_;
  std::int32_t last_ = -1;  // what the rank's compute waits for
  Time lead_;
  OpType type_ = OpType::kOther;
  std::vector<std::size_t> recompute_from_;
};

}  // namespace

SimaiProgram simai_program(const LayerTable& table, const Parallelism& parallel,
                           const SimaiProgramOptions& options) {
  SimaiProgram result;
  result.ranks.families = parallel_groups(parallel);
  result.ranks.programs.push_back(
      Compiler(table, result.ranks.families, options.strict).run(result.layers));
  result.ranks.program_of_rank.assign(static_cast<std::size_t>(parallel.gpus), 0);
  return result;
}

}  // namespace lockstep
