#include "generator/simai_layers.h"

#include <algorithm>

#include "base/error.h"
#include "generator/simai_row.h"

namespace lockstep {
namespace {

using Pass = ComputeProfile::Pass;

bool is_attention(std::string_view name) { return name.starts_with("attention"); }

Error crash(std::string_view what, std::string_view hint) {
  return Error(std::string(what)).field("--frame").hint(hint);
}

}  // namespace

SimaiLayers::SimaiLayers(const MegatronModel& model, const TrainingArgs& args,
                         const ComputeProfile* profile)
    : model_(model), args_(args), profile_(profile), activation_(activation_bytes(args)) {
  if (!model.deepseek || !args.sequence_parallel || args.microbatches == 0) {
    return;
  }
  if (!model.runs.empty() && profile == nullptr) {
    throw crash("DeepSeek with sequence parallelism needs compute times",
                "add --aiob_enable --comp_filepath FILE, or leave sequence parallelism out");
  }
  const auto moe = [](const LayerShape& shape) { return shape.moe; };
  if (!args.moe && std::ranges::any_of(model.shapes, moe)) {
    throw crash("DeepSeek's MoE layers with sequence parallelism need --moe_enable",
                "add --moe_enable, or make every layer dense with --n_dense_layers");
  }
}

void SimaiLayers::add(SimaiBlock& block, SimaiRow line) const {
  if (profile_ != nullptr) {  // with times AICB clears the sizes of absent communication
    for (SimaiPhase* phase : {&line.forward, &line.input_grad}) {
      phase->bytes = phase->comm == "NONE" ? 0 : phase->bytes;
    }
  }
  append(block.text, line);
  ++block.lines;
}

/// A line of a layer without sequence parallelism.
void SimaiLayers::add_whole(SimaiBlock& block, std::string_view name) const {
  if (profile_ == nullptr) {
    const Count bytes = args_.recompute && is_attention(name) ? 2 * activation_ : activation_;
    add(block, {name, {1, "ALLREDUCE", bytes}, {1, "ALLREDUCE", activation_}, {}});
    return;
  }
  const Count forward = profile_->layer_time(name, Pass::kForward);
  const Count backward = profile_->layer_time(name, Pass::kBackward);
  add(block,
      {name, {forward, args_.tp > 1 ? "ALLREDUCE" : "NONE", activation_}, {backward}, {backward}});
}

/// A line of a linear layer with sequence parallelism.
void SimaiLayers::add_linear(SimaiBlock& block, const Linear& linear) const {
  const std::string_view name = linear.name;
  const bool row = linear.kind == LinearKind::kRow;
  const std::string_view forward_comm = row ? "REDUCESCATTER" : "ALLGATHER";
  if (profile_ == nullptr) {
    const Count bytes = args_.recompute && is_attention(name) ? 2 * activation_ : activation_;
    add(block, {name, {1, forward_comm, bytes}, {1, "NONE", row ? activation_ : 0}, {}});
    return;
  }
  Count forward = profile_->layer_time(name, Pass::kForward);
  Count backward = profile_->layer_time(name, Pass::kBackward);
  if (args_.recompute && is_attention(name)) {
    forward = forward * 2;
  }
  if (linear.kind == LinearKind::kPlain) {
    add(block, {name, {forward}, {backward}, {backward}});
    return;
  }
  forward = forward / 2;
  backward = backward / 2;
  const bool cut = args_.tp > 1;
  const std::string_view backward_comm = row ? "ALLGATHER" : "REDUCESCATTER";
  add(block, {name,
              {forward, cut ? forward_comm : "NONE", activation_},
              {backward, cut ? backward_comm : "NONE", row ? activation_ : 0},
              {backward}});
}

/// The five lines of a MoE layer: routing tables, dispatch, gather and scatter of the tensor
/// parallel group, combine.
void SimaiLayers::add_moe(SimaiBlock& block) const {
  const std::string_view name = "mlp_moelayer";
  const bool timed = profile_ != nullptr;
  const bool tp = args_.tp > 1 || !timed;
  const bool ep = args_.ep > 1 || !timed;
  const Count forward = timed ? profile_->layer_time(name, Pass::kForward) : 1;
  const Count backward = timed ? profile_->layer_time(name, Pass::kBackward) : 1;
  const Count routed = activation_ * args_.topk;
  const Count share = routed / args_.tp;
  // DeepSeek dispatches FP8 with a 4-byte scale each 128 values: (1 + 4/128) / 2 of two bytes.
  const Count dispatch = model_.deepseek ? share * 33 / 64 : share;
  const std::string_view all_to_all = ep ? "ALLTOALL_EP" : "NONE";
  const std::string_view gather = tp ? "ALLGATHER" : "NONE";
  const std::string_view scatter = tp ? "REDUCESCATTER" : "NONE";
  const Count routes = 2 * args_.ep * args_.experts * args_.tp;
  add(block, {name, {forward, tp || ep ? "ALLGATHER" : "NONE", routes}, {backward}, {}});
  add(block, {name, {1, all_to_all, dispatch}, {1, all_to_all, share}, {}});
  add(block, {name, {1, gather, routed}, {1, scatter, routed}, {}});
  add(block, {name, {1, scatter, routed}, {1, gather, routed}, {}});
  add(block, {name, {1, all_to_all, share}, {1, all_to_all, share}, {}});
}

SimaiBlock SimaiLayers::layer(const LayerShape& shape) const {
  SimaiBlock block;
  if (!args_.sequence_parallel) {
    add_whole(block, shape.mla ? "attention_layer_mla" : "attention_layer");
    if (shape.moe) {
      add_whole(block, "mlp_moelayer");
    }
    if (!shape.mlp.empty()) {
      add_whole(block, "mlp_layer");
    }
    return block;
  }
  for (const Linear& linear : shape.attention) {
    add_linear(block, linear);
  }
  if (shape.moe) {
    add_moe(block);
  }
  for (const Linear& linear : shape.mlp) {
    add_linear(block, linear);
  }
  return block;
}

SimaiBlock SimaiLayers::after_layers() const {
  SimaiBlock block;
  if (args_.sequence_parallel) {
    add_linear(block, model_.head);
  }
  if (profile_ == nullptr) {
    add(block, {"embedding_norm", {1, "ALLREDUCE", 2 * args_.vocab * args_.hidden}, {}, {}});
  }
  return block;
}

/// The backward time of the last line of a microbatch, or the gradient's if it has no layers.
Count SimaiLayers::last_backward_time() const {
  if (args_.sequence_parallel) {
    return Count(profile_->layer_time(model_.head.name, Pass::kBackward)) / 2;
  }
  if (model_.runs.empty()) {
    return profile_->grad_time(Pass::kBackward);
  }
  const bool dense = !model_.shapes[model_.runs.back().shape].mlp.empty();
  return profile_->layer_time(dense ? "mlp_layer" : "mlp_moelayer", Pass::kBackward);
}

SimaiBlock SimaiLayers::embedding(bool first_microbatch) const {
  SimaiBlock block;
  const std::string_view name = "embedding_layer";
  if (profile_ != nullptr) {
    const Count stale =
        first_microbatch ? Count(profile_->grad_time(Pass::kBackward)) : last_backward_time();
    add(block, {name,
                {profile_->embedding_time(), args_.tp > 1 ? "ALLREDUCE" : "NONE", activation_},
                {},
                {stale}});
  } else if (args_.sequence_parallel) {
    add(block, {name, {1, "NONE", activation_}, {1, "NONE", activation_}, {}});
  } else {
    add_whole(block, name);
  }
  return block;
}

}  // namespace lockstep
