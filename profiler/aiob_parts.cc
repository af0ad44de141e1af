// What each section of AICB's AIOB file times, from the modules of a model.
#include <algorithm>
#include <string>

#include "generator/exact/context_attention.h"
#include "generator/exact/operator_parts.h"
#include "generator/exact/operators.h"
#include "generator/exact/pass.h"
#include "generator/exact/rank_sizes.h"
#include "profiler/job_kernels.h"
#include "profiler/profile_plan.h"

namespace lockstep {
namespace {

const LayerBlock& deepest_block(const Model& model) {
  return *std::ranges::max_element(model.blocks, {}, &LayerBlock::layers);
}

/// Positions come from a table of their own, or else are rotated in: models with more than one
/// embedding have the former.
bool rotates(const Model& model) {
  return std::ranges::count(model.before, ModuleKind::kEmbedding, &Module::kind) == 1;
}

/// "attention.q_norm" -> "q_norm".
std::string last_word(const std::string& name) { return name.substr(name.rfind('.') + 1); }

class Parts {
 public:
  explicit Parts(const Job& job) : job_(job), kernels_(job), sizes_(rank_sizes(job)) {}

  std::vector<AiobPart> take() {
    const LayerBlock& block = deepest_block(job_.model);
    add("Emb", job_.model.before);
    const auto core = std::ranges::find(block.modules, ModuleKind::kAttention, &Module::kind);
    const bool latent = std::ranges::any_of(
        block.modules, [](const Module& m) { return m.name.ends_with("kv_a"); });
    bool seen = false;       // the attention kernel
    bool out = false;        // the projection behind it
    bool norm_seen = false;  // the norm before attention
    int linears = 0;
    for (const Module& module : block.modules) {
      const std::string word = last_word(module.name);
      const std::span<const Module> one(&module, 1);
      const bool before_core = core != block.modules.end() && !seen;
      switch (module.kind) {
        case ModuleKind::kNorm:
          if (before_core) {
            add(norm_seen ? "atten_" + word : "layernorm", one);
            norm_seen = true;
          } else {
            add(out ? "layernorm2" : "atten_" + word, one);
          }
          break;
        case ModuleKind::kAttention:
          add_rotary(module);
          add_attention(module);
          seen = true;
          break;
        case ModuleKind::kActivation:
          add("mlp_gelu", one);
          break;
        case ModuleKind::kMoe:
          add_moe(module);
          break;
        case ModuleKind::kColumnLinear:
        case ModuleKind::kRowLinear:
        case ModuleKind::kPlainLinear:
          if (before_core) {
            add(latent ? latent_name(word) : "atten_qkv", one);
          } else if (seen && !out) {
            add(latent ? "attention_o_row" : "atten_linear", one);
            out = true;
          } else {
            add("mlp_linear_" + std::to_string(++linears), one);
          }
          break;
        default:
          add((seen && !out) || before_core ? "atten_" + word : "mlp_" + word, one);
          break;
      }
    }
    for (const Module& module : job_.model.after) {
      const std::span<const Module> one(&module, 1);
      if (module.kind == ModuleKind::kHead) {
        // The loss is not in AICB's section.
        const Operator product = operators_of(module, sizes_, Region::kSequence).forward.front();
        parts_.push_back({"logit_time", {kernels_.of(product)}});
      } else {
        add(module.kind == ModuleKind::kNorm ? "layernorm_post" : last_word(module.name), one);
      }
    }
    add_parameters();
    return std::move(parts_);
  }

 private:
  /// Forward kernels of the modules, residuals left out, joined to a section of that name.
  void add(const std::string& name, std::span<const Module> modules) {
    AiobPart part{name, {}};
    for (const Kernel& kernel : kernels_.forward(modules)) {
      if (kernel.kind != KernelKind::kResidual) {
        part.kernels.push_back(kernel);
      }
    }
    join(std::move(part));
  }

  void join(AiobPart part) {
    if (part.kernels.empty()) {
      return;
    }
    const auto same = std::ranges::find(parts_, part.name, &AiobPart::name);
    if (same == parts_.end()) {
      parts_.push_back(std::move(part));
    } else {
      same->kernels.insert(same->kernels.end(), part.kernels.begin(), part.kernels.end());
    }
  }

  static std::string latent_name(const std::string& word) {
    return word == "q_a"    ? "attention_linear_q_lora"
           : word == "q_b"  ? "attention_q_column"
           : word == "q"    ? "attention_q_column"
           : word == "kv_a" ? "attention_linear_kv_lora"
                            : "attention_kv_column";
  }

  void add_rotary(const Module& module) {
    if (!rotates(job_.model)) {
      return;
    }
    const auto rope = job_.model.variables.find("rope_dim");
    const bool latent = rope != job_.model.variables.end();  // one key for all heads
    const std::int64_t keys = latent ? 1 : std::max<std::int64_t>(1, module.kv_heads / sizes_.tp);
    const std::int64_t heads = module.heads / sizes_.tp + keys;
    const std::int64_t width = latent ? static_cast<std::int64_t>(rope->second) : module.head_dim;
    const Precision precision =
        job_.precision == Precision::kFp8 ? Precision::kBf16 : job_.precision;
    join({"atten_rotary_emb",
          {make_kernel(KernelKind::kRotary, precision, {sizes_.tokens, heads, width})}});
  }

  void add_attention(const Module& module) {
    std::vector<Operator> forward = operators_of(module, sizes_, Region::kTensor).forward;
    if (sizes_.cp > 1 && job_.context_comm == ContextComm::kAllToAll) {
      forward = of_all_tokens(std::move(forward), sizes_);
    }
    const Operator& op = forward.front();
    if (!has_work(op)) {
      return;
    }
    const Kernel kernel = kernels_.of(op);
    if (op.fused) {
      join({"atten_flash", {kernel}});
      return;
    }
    const std::int64_t batch = op.batch * op.heads;
    const auto product = [&](std::int64_t n, std::int64_t k, std::string_view variant) {
      return make_kernel(KernelKind::kBatchedGemm, kernel.precision, {batch, op.queries, n, k},
                         false, variant);
    };
    Kernel softmax =
        make_kernel(KernelKind::kSoftmax, kernel.precision, {batch, op.queries, op.keys});
    softmax.causal = op.causal;
    join({"atten_core_qk", {product(op.keys, op.head_dim, "forward")}});
    join({"atten_core_softmax", {softmax}});
    join({"atten_core_contex", {product(op.value_dim, op.keys, "input-gradient")}});
  }

  void add_moe(const Module& module) {
    const MoeOperators moe = moe_operators(module, sizes_);
    const auto section = [&](const char* name, const ModuleOperators& operators) {
      AiobPart part{name, {}};
      for (const Operator& op : operators.forward) {
        if (has_work(op)) {
          part.kernels.push_back(kernels_.of(op));
        }
      }
      join(std::move(part));
    };
    section("mlp_router", moe.router);
    section("mlp_permute", moe.permute);
    section("mlp_linear_1", moe.expert_in);
    section("mlp_linear_1", moe.shared_in);
    section("mlp_gelu", moe.expert_activation);
    section("mlp_gelu", moe.shared_activation);
    section("mlp_linear_2", moe.expert_out);
    section("mlp_linear_2", moe.shared_out);
    section("mlp_unpermute", moe.unpermute);
  }

  /// The fp32 gradients of one pipeline stage's rank, divided by the number of replicas.
  void add_parameters() {
    PassOptions options;
    options.sizes = sizes_;
    ParameterCount layers;
    for (const LayerBlock& block : job_.model.blocks) {
      const ParameterCount one = parameters_of(block.modules, options);
      layers += {one.dense * block.layers, one.expert * block.layers, 0};
    }
    const ParameterCount ends =
        parameters_of(job_.model.before, options) + parameters_of(job_.model.after, options);
    const std::int64_t all = ceil_div(layers.dense + layers.expert, job_.pp) + ends.dense;
    parts_.push_back(
        {"param_time",
         {make_kernel(KernelKind::kScale, Precision::kFp32, {std::max<std::int64_t>(1, all)})}});
  }

  const Job& job_;
  JobKernels kernels_;
  RankSizes sizes_;
  std::vector<AiobPart> parts_;
};

}  // namespace

std::vector<AiobPart> aiob_parts(const Job& job) { return Parts(job).take(); }

}  // namespace lockstep
