#include "workloads/samples/gpt.h"

#include <algorithm>
#include <string>
#include <utility>

namespace lockstep::samples {
namespace {

constexpr std::int64_t kFlopsPerNs = 445'230;

/// Parameters that one rank holds.
struct Parameters {
  std::int64_t shared = 0;   ///< reduced over all data-parallel ranks
  std::int64_t experts = 0;  ///< reduced over those that hold the same experts
};

Parameters parameters_of(const GptShape& shape) {
  const std::int64_t h = shape.hidden;
  const std::int64_t attention = (2 * h * h + 2 * h * shape.kv_hidden) / shape.tp;
  constexpr std::int64_t kNorms = 2;  // a layer, each with gain and bias
  Parameters out;
  out.shared = shape.vocab / shape.tp * h + shape.layers * (attention + kNorms * 2 * h) + 2 * h;
  if (shape.experts == 0) {
    out.shared += shape.layers * 2 * h * shape.ffn / shape.tp;
  } else {
    out.shared += shape.layers * h * shape.experts;  // the router
    out.experts = shape.layers * 3 * h * shape.ffn / shape.tp * (shape.experts / shape.ep);
  }
  return out;
}

/// A phase's own half: what is computed, then what is sent.
struct Part {
  std::int64_t flops = 0;
  CommType comm = CommType::kNone;
  GroupKind group = GroupKind::kTp;
  Bytes bytes;
};

class GptTable {
 public:
  explicit GptTable(const GptShape& shape)
      : shape_(shape), flops_(shape), activation_(shape.activation()) {
    add_gradients();
    for (std::int64_t i = 0; i < shape.microbatches; ++i) {
      add_microbatch();
    }
  }

  LayerTable take() { return std::move(table_); }

 private:
  void add(std::string_view name, Part forward, Part input_grad, Part weight_grad) {
    const auto found = std::find(table_.names.begin(), table_.names.end(), name);
    Layer layer;
    layer.name = static_cast<std::int32_t>(found - table_.names.begin());
    if (found == table_.names.end()) {
      table_.names.emplace_back(name);
    }
    layer.forward = phase(forward, GroupKind::kTp);
    layer.input_grad = phase(input_grad, GroupKind::kTp);
    layer.weight_grad = phase(weight_grad, GroupKind::kDp);
    table_.layers.push_back(layer);
  }

  static LayerPhase phase(const Part& part, GroupKind plain) {
    return {.compute = compute_time(part.flops),
            .bytes = part.bytes,
            .comm = part.comm,
            .group = part.comm == CommType::kNone ? plain : part.group};
  }

  Part tensor(CommType comm, std::int64_t flops, std::int64_t times = 1) const {
    if (shape_.tp == 1) {
      return {.flops = flops};
    }
    return {flops, comm, GroupKind::kTp, activation_ * times};
  }

  /// First in the list, hence last in the backward pass: gradients are reduced (FP32), the new
  /// parameters gathered (BF16), as ZeRO 1 does.
  void add_gradients() {
    const Parameters held = parameters_of(shape_);
    if (shape_.dp > 1) {
      add_gradient("grad_gather", CommType::kAllGather, GroupKind::kDp, 2 * held.shared);
      add_gradient("grad_reduce", CommType::kReduceScatter, GroupKind::kDp, 4 * held.shared);
    }
    if (held.experts > 0 && shape_.dp > shape_.ep) {
      add_gradient("expert_grad_gather", CommType::kAllGather, GroupKind::kDpEp, 2 * held.experts);
      add_gradient("expert_grad_reduce", CommType::kReduceScatter, GroupKind::kDpEp,
                   4 * held.experts);
    }
  }

  void add_gradient(std::string_view name, CommType comm, GroupKind group, std::int64_t bytes) {
    add(name, {}, {}, {.comm = comm, .group = group, .bytes = Bytes(bytes)});
  }

  void add_microbatch() {
    add("embedding_layer", tensor(CommType::kReduceScatter, 0), tensor(CommType::kAllGather, 0),
        {});
    for (std::int64_t i = 0; i < shape_.layers; ++i) {
      add_column("attention_column", flops_.qkv);
      add("attention_row", tensor(CommType::kReduceScatter, flops_.core + flops_.projection),
          tensor(CommType::kAllGather, flops_.core * 5 / 2 + flops_.projection),
          {.flops = flops_.projection});
      if (shape_.experts == 0) {
        add_column("mlp_column", flops_.up);
        add_row("mlp_row", flops_.down);
      } else {
        add_exchange("moe_dispatch");
        add_column("moe_column", flops_.up, shape_.top_k);
        add_row("moe_row", flops_.down, shape_.top_k);
        add_exchange("moe_combine");
      }
    }
    add_column("final_column", flops_.logits);
    add_cross_entropy();
  }

  void add_column(std::string_view name, std::int64_t flops, std::int64_t times = 1) {
    add(name, tensor(CommType::kAllGather, flops, times),
        tensor(CommType::kReduceScatter, flops, times), {.flops = flops});
  }

  void add_row(std::string_view name, std::int64_t flops, std::int64_t times = 1) {
    add(name, tensor(CommType::kReduceScatter, flops, times),
        tensor(CommType::kAllGather, flops, times), {.flops = flops});
  }

  /// Each rank's share of the sequence goes to the ranks with its top_k experts, or back.
  void add_exchange(std::string_view name) {
    const Part part{.comm = CommType::kAllToAll,
                    .group = GroupKind::kEp,
                    .bytes = activation_ * shape_.top_k / shape_.tp};
    add(name, part, part, {});
  }

  /// Over a vocabulary that is cut into tp parts: largest logit, target's logit, sum.
  void add_cross_entropy() {
    if (shape_.tp == 1) {
      return;
    }
    const Part part{.comm = CommType::kAllReduce, .bytes = Bytes(4 * shape_.tokens())};
    for (const std::string_view name :
         {"cross_entropy_max", "cross_entropy_target", "cross_entropy_sum"}) {
      add(name, part, {}, {});
    }
  }

  const GptShape& shape_;
  GptFlops flops_;
  Bytes activation_;
  LayerTable table_;
};

}  // namespace

Time compute_time(std::int64_t flops) { return Time::ns((flops + kFlopsPerNs / 2) / kFlopsPerNs); }

GptFlops::GptFlops(const GptShape& shape) {
  const std::int64_t m = shape.tokens();
  const std::int64_t h = shape.hidden;
  const std::int64_t routed = shape.experts == 0 ? m : m * shape.top_k;  // balanced
  const std::int64_t gates = shape.experts == 0 ? 1 : 2;
  qkv = 2 * m * h * (h + 2 * shape.kv_hidden) / shape.tp;
  core = 2 * m * shape.sequence * h / shape.tp;
  projection = 2 * m * h * h / shape.tp;
  up = 2 * routed * h * shape.ffn * gates / shape.tp;
  down = 2 * routed * shape.ffn * h / shape.tp;
  logits = 2 * m * h * shape.vocab / shape.tp;
}

WorkloadJob gpt_job(std::string name, const GptShape& shape) {
  WorkloadJob job;
  job.name = std::move(name);
  job.parallel = {.gpus = shape.tp * shape.dp,
                  .tp = shape.tp,
                  .ep = shape.ep,
                  .pp = 1,
                  .vpp = 1,
                  .ga = shape.microbatches};
  job.work = GptTable(shape).take();
  return job;
}

}  // namespace lockstep::samples
