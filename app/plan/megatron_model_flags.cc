#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/plan/job_plan_files.h"
#include "base/error.h"
#include "generator/megatron_args/megatron_job.h"
#include "generator/megatron_args/megatron_launch.h"

namespace lockstep {
namespace {

const Module* module_of(const std::vector<Module>& modules, ModuleKind kind) {
  const auto found = std::ranges::find(modules, kind, &Module::kind);
  return found == modules.end() ? nullptr : &*found;
}

/// Whether two lists of modules are the same to everything that follows from them.
bool same(const std::vector<Module>& a, const std::vector<Module>& b) {
  return std::ranges::equal(a, b, [](const Module& x, const Module& y) {
    return x.kind == y.kind && x.in == y.in && x.out == y.out && x.bias == y.bias &&
           x.shared == y.shared && x.heads == y.heads && x.kv_heads == y.kv_heads &&
           x.head_dim == y.head_dim && x.value_dim == y.value_dim && x.window == y.window &&
           x.causal == y.causal && x.experts == y.experts && x.topk == y.topk &&
           x.expert_ffn == y.expert_ffn && x.shared_ffn == y.shared_ffn && x.gated == y.gated &&
           x.router_bias == y.router_bias && x.parallel == y.parallel && x.cross == y.cross &&
           (x.kind != ModuleKind::kNorm || x.rms == y.rms);
  });
}

bool same(const Model& a, const Model& b) {
  return same(a.before, b.before) && same(a.after, b.after) &&
         std::ranges::equal(a.blocks, b.blocks, [](const LayerBlock& x, const LayerBlock& y) {
           return x.layers == y.layers && same(x.modules, y.modules);
         });
}

/// The flags that a decoder of one kind of layers would have, right or not.
std::vector<std::string> guess(const Model& model, std::int64_t seq) {
  const std::vector<Module>& layer = model.blocks.front().modules;
  const Module* core = module_of(layer, ModuleKind::kAttention);
  const Module* embedding = module_of(model.before, ModuleKind::kEmbedding);
  const Module* norm = module_of(layer, ModuleKind::kNorm);
  const Module* moe = module_of(layer, ModuleKind::kMoe);
  const Module* head = module_of(model.after, ModuleKind::kHead);
  const Module* activation = module_of(layer, ModuleKind::kActivation);
  const Module* qkv = module_of(layer, ModuleKind::kColumnLinear);
  const Module* out = module_of(layer, ModuleKind::kRowLinear);
  std::vector<std::string> flags;
  if (core == nullptr || embedding == nullptr || norm == nullptr || head == nullptr ||
      qkv == nullptr || out == nullptr || (activation == nullptr) == (moe == nullptr)) {
    return flags;
  }
  const auto add = [&](std::string_view flag, std::int64_t value) {
    flags.push_back(fmt::format("--{} {}", flag, value));
  };
  const auto set = [&](bool on, std::string_view flag) {
    if (on) {
      flags.push_back(fmt::format("--{}", flag));
    }
  };
  const bool gated = moe != nullptr ? moe->gated : activation->in == 2 * activation->out;
  add("num-layers", model.blocks.front().layers);
  add("hidden-size", embedding->out);
  add("num-attention-heads", core->heads);
  if (core->kv_heads != core->heads) {
    set(true, "group-query-attention");
    add("num-query-groups", core->kv_heads);
  }
  if (core->head_dim * core->heads != embedding->out) {
    add("kv-channels", core->head_dim);
  }
  add("ffn-hidden-size", moe != nullptr ? moe->expert_ffn : activation->out);
  add("seq-length", seq);
  const bool learned = model.before.size() > 1;
  add("max-position-embeddings", learned ? model.before[1].in : seq);
  flags.push_back(
      fmt::format("--position-embedding-type {}", learned ? "learned_absolute" : "rope"));
  flags.push_back(fmt::format("--normalization {}", norm->rms ? "RMSNorm" : "LayerNorm"));
  set(gated, "swiglu");
  set(!head->shared, "untie-embeddings-and-output-weights");
  set(!out->bias, "disable-bias-linear");
  set(qkv->bias && !out->bias, "add-qkv-bias");
  set(std::ranges::count(layer, ModuleKind::kNorm, &Module::kind) > 2, "qk-layernorm");
  if (moe != nullptr) {
    add("num-experts", moe->experts);
    add("moe-router-topk", moe->topk);
    add("moe-ffn-hidden-size", moe->expert_ffn);
    if (moe->shared_ffn > 0) {
      add("moe-shared-expert-intermediate-size", moe->shared_ffn);
    }
    set(true, "moe-grouped-gemm");
    flags.emplace_back("--moe-token-dispatcher-type alltoall");
  }
  add("vocab-size", head->out);
  return flags;
}

}  // namespace

std::optional<std::vector<std::string>> megatron_model_flags(const Model& model, std::int64_t seq) {
  if (model.blocks.size() != 1) {
    return std::nullopt;
  }
  std::vector<std::string> flags = guess(model, seq);
  if (flags.empty()) {
    return std::nullopt;
  }
  try {  // read back, they must be this model
    const MegatronLaunch launch = MegatronLaunch::parse(
        fmt::format("torchrun pretrain_gpt.py {}\n", fmt::join(flags, " ")), "megatron.sh", {});
    if (!same(megatron_model(launch, {}), model)) {
      return std::nullopt;
    }
  } catch (const Error&) {
    return std::nullopt;
  }
  return flags;
}

}  // namespace lockstep
