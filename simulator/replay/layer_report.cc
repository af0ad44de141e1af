#include "simulator/replay/layer_report.h"

#include <algorithm>
#include <vector>

#include "simulator/replay/simai_layers.h"

namespace lockstep {
namespace {

struct Outlasting {
  Time end;
  PhaseResult* phase;
};

class Reporter {
 public:
  Reporter(const Program& program, std::span<const CommFamily> families,
           std::span<const OpTiming> timing, const std::optional<Parallelism>& simai)
      : program_(program), families_(families), timing_(timing), simai_(simai) {}

  PhaseResult phase(LayerColumn column, const LayerPhase& layer, const LayerOps::Phase& ops) const {
    PhaseResult result;
    result.bytes = layer.bytes;
    result.comm_type = layer.comm;
    result.group = layer.group;
    const CommFamily& family = families_[static_cast<std::size_t>(layer.group)];
    result.group_size = static_cast<std::int32_t>(
        simai_ ? simai_group_size(column, layer.group, *simai_, simai_->gpus)
               : std::ssize(family.groups()[0]));
    if (ops.comm >= 0) {
      result.bytes = program_.ops()[static_cast<std::size_t>(ops.comm)].bytes;
    }
    add(ops, result);
    return result;
  }

  /// What one run of a phase costs.
  void add(const LayerOps::Phase& ops, PhaseResult& result) const {
    const OpTiming& computed = timing_[static_cast<std::size_t>(ops.compute)];
    result.compute += computed.end - computed.begin;
    if (ops.comm >= 0) {
      const OpTiming& time = timing_[static_cast<std::size_t>(ops.comm)];
      result.comm += time.end - time.ready;
      result.exposed += time.end - time.ready;
    }
  }

  Time end_of(std::int32_t op) const { return timing_[static_cast<std::size_t>(op)].end; }

  /// When the rank's last compute (or tick) ended.
  Time compute_end() const {
    Time end;
    for (std::size_t i = 0; i < timing_.size(); ++i) {
      if (program_.ops()[i].comm == CommType::kNone) {
        end = std::max(end, timing_[i].end);
      }
    }
    return end;
  }

 private:
  const Program& program_;
  std::span<const CommFamily> families_;
  std::span<const OpTiming> timing_;
  const std::optional<Parallelism>& simai_;
};

}  // namespace

void report_layers(const LayerTable& table, std::span<const LayerOps> layer_ops,
                   const Program& program, std::span<const CommFamily> families,
                   std::span<const OpTiming> timing, const std::optional<Parallelism>& simai,
                   StepResult& result) {
  const Reporter reporter(program, families, timing, simai);
  result.names = table.names;
  result.layers.resize(table.layers.size());
  std::vector<Outlasting> outlasting;
  const Time compute_end = reporter.compute_end();
  for (std::size_t i = 0; i < table.layers.size(); ++i) {
    const Layer& layer = table.layers[i];
    const LayerOps& ops = layer_ops[i];
    LayerResult& row = result.layers[i];
    row.name = layer.name;
    row.forward = reporter.phase(LayerColumn::kForward, layer.forward, ops.forward);
    for (const LayerOps::Phase& again : ops.recomputed) {
      reporter.add(again, row.forward);
    }
    row.input_grad = reporter.phase(LayerColumn::kInputGrad, layer.input_grad, ops.input_grad);
    row.weight_grad = reporter.phase(LayerColumn::kWeightGrad, layer.weight_grad, ops.weight_grad);
    row.weight_grad.exposed = Time();
    if (ops.weight_grad.comm >= 0 && (!simai || i == 0)) {
      outlasting.push_back({reporter.end_of(ops.weight_grad.comm), &row.weight_grad});
    }
  }
  std::ranges::stable_sort(outlasting, {}, &Outlasting::end);
  Time mark = compute_end;
  for (const Outlasting& last : outlasting) {
    if (last.end > mark) {
      last.phase->exposed = last.end - mark;
      mark = last.end;
    }
  }
  for (const LayerResult& row : result.layers) {
    for (const PhaseResult* phase : {&row.forward, &row.input_grad, &row.weight_grad}) {
      result.exposed_by_group[static_cast<std::size_t>(phase->group)] += phase->exposed;
    }
  }
}

Time pipeline_bubble(const StepResult& result) {
  const Parallelism& parallel = result.parallel;
  if (parallel.pp <= 1) {
    return {};
  }
  Time work;
  for (const LayerResult& row : result.layers) {
    if (result.names[static_cast<std::size_t>(row.name)] != "embedding_layer") {
      work += row.forward.compute + row.forward.exposed + row.input_grad.compute +
              row.input_grad.exposed + row.weight_grad.compute;
    }
  }
  const auto slots = static_cast<double>(std::max<std::int64_t>(1, parallel.ga * parallel.vpp));
  return Time::seconds(work.seconds() * static_cast<double>(parallel.pp - 1) / slots);
}

}  // namespace lockstep
