#include "app/simai_command.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"

namespace lockstep {
namespace {

const Module* module_of(const std::vector<Module>& modules, ModuleKind kind) {
  const auto found = std::ranges::find(modules, kind, &Module::kind);
  return found == modules.end() ? nullptr : &*found;
}

/// What every layer of a GPT or Llama has.
struct GptLayer {
  const Module *attention = nullptr, *activation = nullptr, *moe = nullptr;
  bool parallel = false;     ///< attention beside the MLP
  bool other_width = false;  ///< its heads together are not as wide as the layer
};

GptLayer layer_of(const std::vector<Module>& modules) {
  GptLayer layer{module_of(modules, ModuleKind::kAttention),
                 module_of(modules, ModuleKind::kActivation), module_of(modules, ModuleKind::kMoe)};
  const Module* out = module_of(modules, ModuleKind::kRowLinear);
  layer.parallel = std::ranges::any_of(modules, &Module::parallel);
  layer.other_width = out != nullptr && layer.attention != nullptr &&
                      layer.attention->heads * layer.attention->head_dim != out->out;
  return layer;
}

bool expressible(const Model& model) {
  return std::ranges::all_of(model.blocks, [](const LayerBlock& block) {
    const GptLayer layer = layer_of(block.modules);
    const bool latent = module_of(block.modules, ModuleKind::kPlainLinear) != nullptr;
    return layer.attention != nullptr && layer.attention->causal && !latent &&
           (layer.activation == nullptr) != (layer.moe == nullptr);
  });
}

std::string lost_of(const Job& job, const GptLayer& layer, std::size_t kinds) {
  std::vector<std::string_view> lost;
  const auto note = [&](bool is, std::string_view what) {
    if (is) {
      lost.push_back(what);
    }
  };
  note(layer.attention->kv_heads != layer.attention->heads, "grouped queries");
  note(layer.moe != nullptr && layer.moe->shared_ffn > 0, "shared experts");
  note(kinds > 1, "layers that differ");
  note(!job.stage_layers.empty() || job.first_stage_layers > 0 || job.last_stage_layers > 0,
       "stages that differ");
  note(layer.other_width, "heads of another width");
  note(layer.parallel, "attention beside the MLP");
  note(job.vpp > 1, "virtual stages");
  note(job.sharding > Sharding::kZero1, "sharded gradients and parameters");
  return join(lost, ", ");
}

}  // namespace

SimaiCommand simai_command(const Job& job) {
  const Model& model = job.model;
  const Module* embedding = module_of(model.before, ModuleKind::kEmbedding);
  if (embedding == nullptr || model.blocks.empty() || !expressible(model)) {
    return {};
  }
  std::int64_t layers = 0;
  for (const LayerBlock& block : model.blocks) {
    layers += block.layers;
  }
  // AICB has no context parallelism and equal stages: it would have other batches, fewer layers.
  if (job.cp > 1 || layers % job.pp != 0) {
    return {};
  }
  const GptLayer layer = layer_of(model.blocks.back().modules);
  SimaiCommand command{"--generator simai-training", lost_of(job, layer, model.blocks.size())};
  const auto add = [&](std::string_view flag, std::int64_t value) {
    command.words += fmt::format(" --{} {}", flag, value);
  };
  const auto set = [&](bool on, std::string_view flag) {
    command.words += on ? fmt::format(" --{}", flag) : "";
  };
  add("world_size", job.gpus);
  add("tp", job.tp);
  add("pp", job.pp);
  add("global_batch", job.global_batch);
  add("micro_batch", job.micro_batch);
  add("seq_length", job.seq);
  add("num_layers", layers);
  add("hidden_size", embedding->out);
  add("num_attention_heads", layer.attention->heads);
  add("ffn_hidden_size", layer.moe != nullptr ? layer.moe->expert_ffn : layer.activation->out);
  add("vocab_size", embedding->in);
  set(layer.moe != nullptr ? layer.moe->gated : layer.activation->in == 2 * layer.activation->out,
      "swiglu");
  set(job.sequence_parallel || layer.moe != nullptr, "sp");  // AICB asks for it beside experts
  set(job.sharding != Sharding::kNone, "use_distributed_optimizer");
  set(job.recompute != Recompute::kNone, "recompute_activations");
  if (layer.moe != nullptr) {
    set(true, "moe_enable");
    add("num_experts", layer.moe->experts);
    add("topk", layer.moe->topk);
    add("ep", job.ep);
  }
  return command;
}

}  // namespace lockstep
