#include "simulator/replay/megatron_pipeline.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "simulator/replay/parallel_groups.h"

namespace lockstep {
namespace {

constexpr std::int32_t kCompute = 0;  // then one stream for each GroupKind
enum : std::int32_t { kForwardIn = 8, kForwardOut, kBackwardIn, kBackwardOut };

/// Where the microbatches' layers are.
struct Cut {
  std::size_t first = 0, period = 0, microbatches = 1;
  std::size_t end() const { return first + period * microbatches; }
};

Cut cut_of(const LayerTable& table, std::int64_t ga) {
  const auto name = [&](std::size_t layer) -> const std::string& {
    return table.names[static_cast<std::size_t>(table.layers[layer].name)];
  };
  const auto embedding_from = [&](std::size_t layer) {
    while (layer < table.layers.size() && name(layer) != "embedding_layer") {
      ++layer;
    }
    return layer;
  };
  Cut cut;
  cut.microbatches = static_cast<std::size_t>(std::max<std::int64_t>(1, ga));
  cut.first = embedding_from(0);
  if (cut.first == table.layers.size()) {
    throw Error("no layer is an embedding_layer, with which a microbatch begins")
        .hint("--semantics simai runs any table of layers");
  }
  std::size_t next = embedding_from(cut.first + 1);
  if (cut.microbatches == 1) {
    next = cut.first;
    while (next < table.layers.size() && !name(next).starts_with("cross_entropy") &&
           !name(next).starts_with("optimizer")) {
      ++next;
    }
  }
  cut.period = next - cut.first;
  for (std::size_t i = cut.first; i < cut.end(); ++i) {
    if (i >= table.layers.size() || name(i) != name(cut.first + (i - cut.first) % cut.period)) {
      throw Error(fmt::format("ga is {}, but the layers from {} on are not so many equal sequences",
                              ga, cut.first + 1))
          .expected(fmt::format("{} layers from each embedding_layer on", cut.period))
          .hint("--semantics simai runs any table of layers");
    }
  }
  return cut;
}

class Stage {
 public:
  Stage(const LayerTable& table, const Cut& cut, const Parallelism& parallel,
        const std::vector<CommFamily>& families, std::int64_t stage)
      : table_(table), cut_(cut), parallel_(parallel), families_(families), stage_(stage) {
    program_.streams = {"compute",    "tp",          "dp",          "ep",
                        "dp_ep",      "pp",          "cp",          "world",
                        "forward in", "forward out", "backward in", "backward out"};
  }

  OpProgram build() {
    type_ = OpType::kGatherParameters;
    for (std::size_t i = 0; i < cut_.first; ++i) {
      phase(table_.layers[i], table_.layers[i].forward, true);
    }
    const std::int64_t count = static_cast<std::int64_t>(cut_.microbatches);
    const std::int64_t ahead = std::min(parallel_.pp - 1 - stage_, count);
    for (std::int64_t i = 0; i < ahead; ++i) {
      forward(i);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      if (i + ahead < count) {
        forward(i + ahead);
      }
      backward(i);
    }
    microbatch_ = -1;
    type_ = OpType::kReduceGradients;
    for (std::size_t i = cut_.first; i-- > 0;) {
      phase(table_.layers[i], table_.layers[i].input_grad, true);
      phase(table_.layers[i], table_.layers[i].weight_grad, true);
    }
    type_ = OpType::kOptimizer;
    for (std::size_t i = cut_.end(); i < table_.layers.size(); ++i) {
      const Layer& layer = table_.layers[i];
      for (const LayerPhase* each : {&layer.forward, &layer.input_grad, &layer.weight_grad}) {
        phase(layer, *each, true);
      }
    }
    return std::move(program_);
  }

 private:
  std::int32_t add(Op op) {
    op.microbatch = microbatch_;
    op.chunk = microbatch_ < 0 ? -1 : 0;
    program_.ops.push_back(std::move(op));
    return static_cast<std::int32_t>(program_.ops.size()) - 1;
  }

  void phase(const Layer& layer, const LayerPhase& what, bool awaited) {
    const std::string& name = table_.names[static_cast<std::size_t>(layer.name)];
    Op compute;
    compute.name = name;
    compute.stream = kCompute;
    compute.compute = what.compute;
    compute.after = tail_;
    compute.type = type_;
    tail_ = {add(std::move(compute))};
    const auto family = static_cast<std::size_t>(what.group);
    if (what.comm == CommType::kNone || what.bytes <= Bytes(0) ||
        families_[family].groups().front().size() < 2) {
      return;
    }
    Op comm;
    comm.name = name;
    comm.stream = 1 + static_cast<std::int32_t>(family);
    comm.comm = what.comm;
    comm.group = static_cast<std::int32_t>(family);
    comm.bytes = what.bytes;
    comm.after = tail_;
    comm.type = awaited ? type_ : OpType::kReduceGradients;
    const std::int32_t index = add(std::move(comm));
    if (awaited) {
      tail_ = {index};
    }
  }

  void message(OpType type, std::int32_t stream, std::int32_t peer, bool send) {
    Op op;
    op.name = name_of(type);
    op.type = type;
    op.stream = stream;
    op.comm = CommType::kSendRecv;
    op.group = static_cast<std::int32_t>(GroupKind::kPp);
    op.peer = peer;
    op.send = send;
    op.bytes = Bytes(std::llround(table_.pp_comm_bytes));
    if (send) {
      op.after = tail_;
      add(std::move(op));
    } else {
      tail_.push_back(add(std::move(op)));
    }
  }

  bool here(std::size_t place) const { return place > 0 || stage_ == 0; }  // 0: the embedding

  void forward(std::int64_t microbatch) {
    microbatch_ = static_cast<std::int32_t>(microbatch);
    type_ = OpType::kForward;
    if (stage_ > 0) {
      message(OpType::kForwardReceive, kForwardIn, -1, false);
    }
    const std::size_t base = cut_.first + static_cast<std::size_t>(microbatch) * cut_.period;
    for (std::size_t i = 0; i < cut_.period; ++i) {
      if (here(i)) {
        phase(table_.layers[base + i], table_.layers[base + i].forward, true);
      }
    }
    if (stage_ + 1 < parallel_.pp) {
      message(OpType::kForwardSend, kForwardOut, 1, true);
    }
  }

  void backward(std::int64_t microbatch) {
    microbatch_ = static_cast<std::int32_t>(microbatch);
    type_ = OpType::kBackward;
    if (stage_ + 1 < parallel_.pp) {
      message(OpType::kBackwardReceive, kBackwardIn, 1, false);
    }
    const std::size_t base = cut_.first + static_cast<std::size_t>(microbatch) * cut_.period;
    for (std::size_t i = cut_.period; i-- > 0;) {
      if (here(i)) {
        phase(table_.layers[base + i], table_.layers[base + i].input_grad, true);
        phase(table_.layers[base + i], table_.layers[base + i].weight_grad, false);
      }
    }
    if (stage_ > 0) {
      message(OpType::kBackwardSend, kBackwardOut, -1, true);
    }
  }

  const LayerTable& table_;
  const Cut& cut_;
  const Parallelism& parallel_;
  const std::vector<CommFamily>& families_;
  std::int64_t stage_;
  OpProgram program_;
  std::vector<std::int32_t> tail_;
  OpType type_ = OpType::kOther;
  std::int32_t microbatch_ = -1;
};

}  // namespace

WorkloadJob megatron_pipeline(const WorkloadJob& job) {
  const auto& table = std::get<LayerTable>(job.work);
  const Parallelism& parallel = job.parallel;
  if (parallel.gpus < 1) {
    throw Error("the file does not say of how many GPUs the job is")
        .field("all_gpus")
        .hint("give --gpus");
  }
  const Cut cut = cut_of(table, parallel.ga);
  const std::vector<CommFamily> families = parallel_groups(parallel);
  OpTable ops;
  for (std::size_t i = 0; i < families.size(); ++i) {
    const auto groups = families[i].groups();
    ops.groups.push_back(
        {std::string(name_of(static_cast<GroupKind>(i))), {groups.begin(), groups.end()}});
  }
  const auto per_stage = static_cast<std::int32_t>(parallel.gpus / parallel.pp);
  for (std::int64_t stage = 0; stage < parallel.pp; ++stage) {
    ops.programs.push_back(Stage(table, cut, parallel, families, stage).build());
    const auto first = static_cast<std::int32_t>(stage) * per_stage;
    ops.programs.back().ranks = {{first, first + per_stage, 1}};
  }
  WorkloadJob result = job;
  result.work = std::move(ops);
  return result;
}

}  // namespace lockstep
