#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "generator/megatron_args/megatron_files.h"
#include "generator/megatron_args/megatron_job.h"
#include "generator/megatron_args/moe_layers.h"
#include "generator/model/model_file.h"

namespace lockstep {
namespace {

/// Vocabularies that follow from --tokenizer-type alone.
struct TokenizerSize {
  std::string_view type;
  std::int64_t vocabulary;
};
constexpr auto kTokenizers = std::to_array<TokenizerSize>({
    {"GPT2BPETokenizer", 50257},
    {"Llama2Tokenizer", 32000},
});

/// Programs of Megatron-LM that train something else than a GPT.
constexpr auto kOtherPrograms = std::to_array<std::string_view>(
    {"bert", "t5", "vision", "vit", "mamba", "hybrid", "retro", "ict", "vlm", "multimodal"});

class ModelReader {
 public:
  ModelReader(const MegatronLaunch& launch, const Variables& given)
      : launch_(launch), given_(given), values_(given) {}

  Model read() {
    check_program();
    required("num-layers", "layers");
    required("hidden-size", "hidden");
    required("num-attention-heads", "heads");
    const bool gated = launch_.has("swiglu") || launch_.has("quick-geglu");
    put("gated", gated ? 1 : 0);
    size("ffn-hidden-size", "ffn", gated ? swiglu_width() : 4 * value("hidden"));
    size("kv-channels", "head_dim");
    read_groups();
    const bool bias = !launch_.has("disable-bias-linear");
    put("bias", bias ? 1 : 0);
    put("qkv_bias", launch_.has("add-qkv-bias") || bias ? 1 : 0);
    put("rms", launch_.choice("normalization", {"LayerNorm", "RMSNorm"}) == "RMSNorm" ? 1 : 0);
    put("qk_norm", launch_.has("qk-layernorm") ? 1 : 0);
    put("tied", launch_.has("untie-embeddings-and-output-weights") ? 0 : 1);
    read_positions();
    read_vocabulary();
    read_latent_attention();
    const std::vector<bool> expert_layers = read_experts();
    Model model = parse_model(megatron_files().front().text, "megatron.yaml", values_);
    model.name = "megatron";
    model.source = launch_.file();
    place_experts(model, expert_layers);
    return model;
  }

 private:
  double value(std::string_view variable) const {
    const auto found = values_.find(std::string(variable));
    return found == values_.end() ? 0 : found->second;
  }
  void put(std::string_view variable, double value) {
    values_.try_emplace(std::string(variable), value);
  }
  bool is_given(std::string_view variable) const { return given_.count(std::string(variable)) > 0; }

  void size(std::string_view flag, std::string_view variable, double otherwise = 0) {
    if (is_given(variable)) {
      launch_.pass_over(flag);
    } else if (const auto found = launch_.whole(flag, 1, flag)) {
      put(variable, static_cast<double>(*found));
    } else if (otherwise > 0) {
      put(variable, otherwise);
    }
  }
  void required(std::string_view flag, std::string_view variable) {
    size(flag, variable);
    if (values_.count(std::string(variable)) == 0) {
      throw Error(fmt::format("--{} is missing", flag))
          .at(launch_.file(), launch_.line())
          .expected(fmt::format("--{} among the flags of this command", flag))
          .hint(fmt::format("or add --{} N to your own command line{}{}", flag,
                            launch_.hidden().empty() ? "" : "; ", launch_.hidden()));
    }
  }
  void check_program() const {
    const std::string program =
        to_lower(launch_.program().substr(launch_.program().rfind('/') + 1));
    for (const std::string_view other : kOtherPrograms) {
      if (program.find(other) != std::string::npos) {
        throw Error(fmt::format("{} trains no GPT", printable(program)))
            .at(launch_.file(), launch_.line())
            .expected("pretrain_gpt.py or a program like it")
            .hint("--model NAME or --model-file F for the model; the job is read all the same");
      }
    }
  }

  /// int((4 h 2/3) / 64) 64: Megatron-LM, arguments.py.
  double swiglu_width() const {
    const double width = 4 * value("hidden") * 2 / 3 / 64;
    return static_cast<double>(static_cast<std::int64_t>(width)) * 64;
  }

  void read_groups() {
    const bool grouped = launch_.has("group-query-attention");
    if (is_given("kv_heads") || !grouped) {
      launch_.pass_over("num-query-groups");
      return;
    }
    size("num-query-groups", "kv_heads", 1);
  }

  void read_positions() {
    const std::string kind =
        launch_
            .choice("position-embedding-type",
                    {"learned_absolute", "rope", "mrope", "yarn", "relative", "none"})
            .value_or(launch_.has("use-rotary-position-embeddings") ? "rope" : "learned_absolute");
    const bool learned =
        (kind == "learned_absolute" || kind == "absolute") && !launch_.has("no-position-embedding");
    if (learned) {
      size("max-position-embeddings", "positions");
    } else {
      launch_.pass_over("max-position-embeddings");
    }
  }

  void read_vocabulary() {
    const std::string type = launch_.text("tokenizer-type").value_or("");
    if (is_given("vocabulary")) {
      launch_.pass_over("vocab-size");
      return;
    }
    if (const auto size = launch_.whole("vocab-size", 1, "vocab-size")) {
      put("vocabulary", static_cast<double>(*size + (type == "NullTokenizer" ? 1 : 0)));
      return;
    }
    for (const TokenizerSize& each : kTokenizers) {
      if (type == each.type ||
          (type.empty() && each.type == "GPT2BPETokenizer" && launch_.line_of("merge-file") > 0)) {
        put("vocabulary", static_cast<double>(each.vocabulary));
        return;
      }
    }
    throw Error("the size of the vocabulary is not told: it is in the tokenizer's files")
        .at(launch_.file(), launch_.line_of("tokenizer-type") > 0
                                ? launch_.line_of("tokenizer-type")
                                : launch_.line())
        .expected("--vocab-size N, here or on your own command line");
  }

  void read_latent_attention() {
    if (!launch_.has("multi-latent-attention")) {
      return;
    }
    size("q-lora-rank", "q_lora");
    size("kv-lora-rank", "kv_lora", 32);
    size("qk-head-dim", "nope_dim", 128);
    size("qk-pos-emb-head-dim", "rope_dim", 64);
    size("v-head-dim", "value_dim", 128);
  }

  std::vector<bool> read_experts() {
    const auto layers = static_cast<std::size_t>(value("layers"));
    size("num-experts", "experts");
    if (value("experts") < 1) {
      return std::vector<bool>(layers, false);
    }
    size("moe-router-topk", "topk", 2);
    size("moe-ffn-hidden-size", "expert_ffn", value("ffn"));
    size("moe-shared-expert-intermediate-size", "shared_ffn");
    const std::string frequency = launch_.joined("moe-layer-freq").value_or("1");
    try {
      std::vector<bool> pattern = moe_layers(frequency, layers);
      std::size_t count = 0;
      for (const bool expert : pattern) {
        count += expert ? 1 : 0;
      }
      put("expert_layers", static_cast<double>(count));
      return pattern;
    } catch (Error& error) {
      error.locate(launch_.file(), launch_.line_of("moe-layer-freq"));
      throw;
    }
  }

  /// Cuts the two kinds of layers into runs in the order of `expert_layers`.
  static void place_experts(Model& model, const std::vector<bool>& expert_layers) {
    if (model.blocks.size() < 2) {
      return;
    }
    const std::vector<LayerBlock> kinds = std::exchange(model.blocks, {});
    for (std::size_t i = 0; i < expert_layers.size(); ++i) {
      const bool same = i > 0 && expert_layers[i] == expert_layers[i - 1];
      if (!same) {
        model.blocks.push_back(kinds[expert_layers[i] ? 1 : 0]);
        model.blocks.back().layers = 0;
      }
      ++model.blocks.back().layers;
    }
  }

  const MegatronLaunch& launch_;
  const Variables& given_;
  Variables values_;
};

}  // namespace

Model megatron_model(const MegatronLaunch& launch, const Variables& given) {
  return ModelReader(launch, given).read();
}

}  // namespace lockstep
