#pragma once

#include <string>
#include <vector>

#include "generator/job.h"

namespace lockstep::testing {

/// Small models for tests, as a model file would describe them.

inline Module linear(ModuleKind kind, std::string name, std::int64_t in, std::int64_t out,
                     bool bias = false) {
  Module module;
  module.name = std::move(name);
  module.kind = kind;
  module.in = in;
  module.out = out;
  module.bias = bias;
  return module;
}

inline Module norm(std::string name, std::int64_t width, bool rms = true) {
  Module module = linear(ModuleKind::kNorm, std::move(name), width, width);
  module.rms = rms;
  return module;
}

inline Module attention(std::int64_t heads, std::int64_t kv_heads, std::int64_t head_dim) {
  Module module;
  module.name = "attention.core";
  module.kind = ModuleKind::kAttention;
  module.heads = heads;
  module.kv_heads = kv_heads;
  module.head_dim = module.value_dim = head_dim;
  return module;
}

inline std::vector<Module> attention_modules(std::int64_t hidden, std::int64_t heads,
                                             std::int64_t kv_heads, bool rms, bool bias) {
  const std::int64_t dim = hidden / heads;
  return {norm("attention.norm", hidden, rms),
          linear(ModuleKind::kColumnLinear, "attention.qkv", hidden, (heads + 2 * kv_heads) * dim,
                 bias),
          attention(heads, kv_heads, dim),
          linear(ModuleKind::kRowLinear, "attention.out", hidden, hidden, bias)};
}

inline Module head(std::int64_t hidden, std::int64_t vocabulary, bool tied) {
  Module module = linear(ModuleKind::kHead, "head", hidden, vocabulary);
  module.shared = tied;
  return module;
}

/// GPT: LayerNorm, biases, MLP of 4 hidden, tied head, learned positions.
inline Model gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                 std::int64_t vocabulary, std::int64_t positions) {
  Model model;
  model.name = "gpt";
  model.before = {linear(ModuleKind::kEmbedding, "words", vocabulary, hidden),
                  linear(ModuleKind::kEmbedding, "positions", positions, hidden)};
  model.before.back().whole = true;
  LayerBlock block{"decoder", layers, attention_modules(hidden, heads, heads, false, true)};
  block.modules.push_back(norm("mlp.norm", hidden, false));
  block.modules.push_back(linear(ModuleKind::kColumnLinear, "mlp.in", hidden, 4 * hidden, true));
  block.modules.push_back(linear(ModuleKind::kActivation, "mlp.gelu", 4 * hidden, 4 * hidden));
  block.modules.push_back(linear(ModuleKind::kRowLinear, "mlp.out", 4 * hidden, hidden, true));
  model.blocks = {block};
  model.after = {norm("norm", hidden, false), head(hidden, vocabulary, true)};
  return model;
}

/// Llama-like with grouped queries; `experts` > 0 turns the MLP into an MoE with top-2.
inline Model llama(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                   std::int64_t kv_heads, std::int64_t ffn, std::int64_t vocabulary,
                   std::int64_t experts = 0) {
  Model model;
  model.name = "llama";
  model.before = {linear(ModuleKind::kEmbedding, "words", vocabulary, hidden)};
  LayerBlock block{"decoder", layers, attention_modules(hidden, heads, kv_heads, true, false)};
  block.modules.push_back(norm("mlp.norm", hidden));
  if (experts > 0) {
    Module moe = linear(ModuleKind::kMoe, "moe", hidden, hidden);
    moe.experts = experts;
    moe.topk = 2;
    moe.expert_ffn = ffn;
    block.modules.push_back(moe);
  } else {
    block.modules.push_back(linear(ModuleKind::kColumnLinear, "mlp.in", hidden, 2 * ffn));
    block.modules.push_back(linear(ModuleKind::kActivation, "mlp.silu", 2 * ffn, ffn));
    block.modules.push_back(linear(ModuleKind::kRowLinear, "mlp.out", ffn, hidden));
  }
  model.blocks = {block};
  model.after = {norm("norm", hidden), head(hidden, vocabulary, false)};
  return model;
}

}  // namespace lockstep::testing
