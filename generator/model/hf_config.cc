#include "generator/model/hf_config.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "generator/model/model_file.h"
#include "generator/model/zoo.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMaxText = std::int64_t{16} << 20;
constexpr std::int64_t kMaxSize = std::int64_t{1} << 40;

/// A field of the config and the variable it gives. An optional one may be absent or null: then
/// the variable keeps `otherwise` of the type, or the architecture's default.
struct Field {
  std::string_view key, variable;
  bool required = true;
  std::int64_t add = 0;  ///< OPT's positions: two more than it says
};

/// A field that must have this value, or be absent or null, for the architecture to be the one.
struct Demand {
  std::string_view key;
  std::int64_t value;
};

struct Type {
  std::string_view name, architecture;
  std::vector<Field> fields;
  Variables otherwise;
  std::vector<Demand> demands;
};

const std::vector<Field> kDecoder{{"hidden_size", "hidden"},
                                  {"num_hidden_layers", "layers"},
                                  {"num_attention_heads", "heads"},
                                  {"vocab_size", "vocabulary"},
                                  {"tie_word_embeddings", "tied", false}};

std::vector<Field> decoder_with(std::vector<Field> more) {
  more.insert(more.begin(), kDecoder.begin(), kDecoder.end());
  return more;
}

std::vector<Type> make_types() {
  const Field ffn{"intermediate_size", "ffn"};
  const Field kv_heads{"num_key_value_heads", "kv_heads", false};
  const Field head_dim{"head_dim", "head_dim", false};
  const Field window{"sliding_window", "window", false};
  const Field topk{"num_experts_per_tok", "topk"};
  const Field moe_ffn{"moe_intermediate_size", "expert_ffn"};
  const std::vector<Demand> all_sparse{{"decoder_sparse_step", 1}};
  const std::vector<Field> deepseek = decoder_with({{"first_k_dense_replace", "first_dense"},
                                                    {"q_lora_rank", "q_lora", false},
                                                    {"kv_lora_rank", "kv_lora"},
                                                    {"qk_nope_head_dim", "nope_dim"},
                                                    {"qk_rope_head_dim", "rope_dim"},
                                                    {"v_head_dim", "value_dim"},
                                                    ffn,
                                                    {"n_routed_experts", "experts"},
                                                    topk,
                                                    moe_ffn,
                                                    {"n_shared_experts", "shared_experts", false}});
  const Variables no_latent{{"q_lora", 0}, {"shared_experts", 0}};
  const std::vector<Field> encoder{{"hidden_size", "hidden"},
                                   {"num_hidden_layers", "layers"},
                                   {"num_attention_heads", "heads"},
                                   ffn};
  std::vector<Field> bert = encoder, vit = encoder;
  bert.insert(bert.end(), {{"vocab_size", "vocabulary"},
                           {"max_position_embeddings", "positions"},
                           {"type_vocab_size", "types"}});
  vit.insert(vit.end(), {{"image_size", "image"},
                         {"patch_size", "patch"},
                         {"num_channels", "channels", false},
                         {"num_labels", "classes", false}});
  return {
      {"bert", "bert", bert, {}, {}},
      {"deepseek_v2", "deepseek", deepseek, no_latent, {{"moe_layer_freq", 1}}},
      {"deepseek_v3", "deepseek", deepseek, no_latent, {{"moe_layer_freq", 1}}},
      {"gemma",
       "gemma",
       decoder_with({kv_heads, {"head_dim", "head_dim"}, ffn}),
       {{"pattern", 1}, {"window", 0}, {"post_norm", 0}},
       {}},
      {"gemma2", "gemma", decoder_with({kv_heads, {"head_dim", "head_dim"}, ffn, window}), {}, {}},
      {"gemma3_text",
       "gemma",
       decoder_with({kv_heads,
                     {"head_dim", "head_dim"},
                     ffn,
                     window,
                     {"sliding_window_pattern", "pattern", false}}),
       {{"pattern", 6}, {"qk_norm", 1}},
       {}},
      {"gpt2",
       "gpt",
       {{"n_embd", "hidden"},
        {"n_layer", "layers"},
        {"n_head", "heads"},
        {"n_inner", "ffn", false},
        {"vocab_size", "vocabulary"},
        {"n_positions", "positions"},
        {"tie_word_embeddings", "tied", false}},
       {},
       {}},
      {"gpt_oss",
       "gpt-oss",
       decoder_with({kv_heads,
                     head_dim,
                     window,
                     {"num_local_experts", "experts"},
                     topk,
                     {"intermediate_size", "expert_ffn"}}),
       {},
       {}},
      {"kimi_k2", "deepseek", deepseek, no_latent, {{"moe_layer_freq", 1}}},
      {"llama", "llama", decoder_with({kv_heads, head_dim, ffn}), {}, {{"attention_bias", 0}}},
      {"llama4_text",
       "llama4",
       decoder_with({kv_heads,
                     head_dim,
                     {"attention_chunk_size", "chunk", false},
                     {"intermediate_size_mlp", "ffn"},
                     {"num_local_experts", "experts"},
                     topk,
                     {"intermediate_size", "expert_ffn"}}),
       {},
       {{"interleave_moe_layer_step", 2}}},
      {"mistral", "llama", decoder_with({kv_heads, head_dim, ffn, window}), {}, {}},
      {"mixtral",
       "mixtral",
       decoder_with({kv_heads,
                     head_dim,
                     {"num_local_experts", "experts"},
                     topk,
                     {"intermediate_size", "expert_ffn"}}),
       {},
       {}},
      {"nemotron",
       "nemotron",
       decoder_with({kv_heads, head_dim, ffn}),
       {},
       {{"attention_bias", 0}, {"mlp_bias", 0}}},
      {"opt",
       "gpt",
       decoder_with({{"ffn_dim", "ffn"}, {"max_position_embeddings", "positions", true, 2}}),
       {},
       {}},
      {"phi3", "llama", decoder_with({kv_heads, head_dim, ffn, window}), {}, {}},
      {"qwen2",
       "llama",
       decoder_with({kv_heads, ffn}),
       {{"qkv_bias", 1}},
       {{"use_sliding_window", 0}}},
      {"qwen2_moe",
       "mixtral",
       decoder_with({kv_heads,
                     {"num_experts", "experts"},
                     topk,
                     moe_ffn,
                     {"shared_expert_intermediate_size", "shared_ffn"}}),
       {{"qkv_bias", 1}},
       all_sparse},
      {"qwen3",
       "qwen3",
       decoder_with({kv_heads, head_dim, ffn}),
       {},
       {{"use_sliding_window", 0}, {"attention_bias", 0}}},
      {"qwen3_moe",
       "qwen3-moe",
       decoder_with({kv_heads, head_dim, {"num_experts", "experts"}, topk, moe_ffn}),
       {},
       all_sparse},
      {"t5",
       "t5",
       {{"d_model", "hidden"},
        {"num_layers", "layers"},
        {"num_decoder_layers", "decoder_layers", false},
        {"num_heads", "heads"},
        {"d_kv", "head_dim"},
        {"d_ff", "ffn"},
        {"vocab_size", "vocabulary"},
        {"relative_attention_num_buckets", "buckets", false},
        {"is_gated_act", "gated", false},
        {"tie_word_embeddings", "tied", false}},
       {},
       {}},
      {"vit", "vit", vit, {}, {}},
  };
}

bool present(const JsonView& config, std::string_view key) {
  return config.has(key) && !config[key].json().is_null();
}

std::int64_t value_of(const JsonView& field) {
  return field.json().is_boolean() ? (field.boolean() ? 1 : 0) : field.integer(0, kMaxSize);
}

const Type& type_of(const JsonView& config, const std::vector<Type>& types) {
  const std::string& name = config["model_type"].string();
  const auto found =
      std::find_if(types.begin(), types.end(), [&](const Type& type) { return type.name == name; });
  if (found == types.end()) {
    const std::vector<std::string_view> known = hf_model_types();
    Error error = config["model_type"]
                      .error(fmt::format("unknown model_type '{}'", printable(name)))
                      .expected(join(known, ", "));
    const std::string_view near = closest(name, known);
    const std::string_view other = "a model file says what it is made of: docs/formats/model.md";
    throw std::move(error).hint(
        config.has("text_config")
            ? "its language model stands under text_config: put that part into a file of its own"
        : near.empty() ? std::string(other)
                       : fmt::format("did you mean {}? Otherwise {}", near, other));
  }
  return *found;
}

/// Hugging Face's defaults, where the architecture has such variables: as many key and value heads
/// as heads, and heads that make up the hidden size.
void fill_heads(const Type& type, Variables& variables) {
  for (const Field& field : type.fields) {
    if (field.variable == "kv_heads") {
      variables.try_emplace("kv_heads", variables.at("heads"));
      if (variables.at("heads") > 0) {
        variables.try_emplace("head_dim",
                              std::floor(variables.at("hidden") / variables.at("heads")));
      }
    }
  }
}

}  // namespace

std::vector<std::string_view> hf_model_types() {
  std::vector<std::string_view> names;
  for (const Type& type : make_types()) {
    names.push_back(type.name);
  }
  return names;
}

Model parse_hf_config(std::string_view text, const std::string& file, const Variables& given) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || (text[begin] != '{' && text[begin] != '[')) {
    throw Error("no JSON object")
        .at(file)
        .expected("a Hugging Face config.json")
        .hint("--model-file reads a model file in YAML");
  }
  const Json json = parse_json(text, file);
  const JsonView config(json, file);
  const std::vector<Type> types = make_types();
  const Type& type = type_of(config, types);
  for (const Demand& demand : type.demands) {
    if (present(config, demand.key) && value_of(config[demand.key]) != demand.value) {
      throw config[demand.key]
          .error(fmt::format("layers of this {} differ from the built-in ones", type.name))
          .expected(fmt::format("{}", demand.value))
          .hint("a model file can say so: docs/formats/model.md");
    }
  }
  if (present(config, "mlp_only_layers") && config["mlp_only_layers"].size() > 0) {
    throw config["mlp_only_layers"]
        .error("dense layers between those with experts")
        .expected("[]")
        .hint("a model file can say so: docs/formats/model.md");
  }
  Variables variables = type.otherwise;
  if (type.name == "t5" && present(config, "feed_forward_proj")) {
    variables["gated"] = config["feed_forward_proj"].string().starts_with("gated") ? 1 : 0;
  }
  for (const Field& field : type.fields) {
    if (field.required || present(config, field.key)) {
      variables[std::string(field.variable)] =
          static_cast<double>(value_of(config[field.key]) + field.add);
    }
  }
  fill_heads(type, variables);
  for (const auto& [name, value] : given) {
    variables[name] = value;
  }
  Model model = with_context(fmt::format("while making the {} of {}", type.name, printable(file)),
                             [&] { return find_model(type.architecture, variables); });
  model.name = type.name;
  model.source = file;
  return model;
}

Model read_hf_config(const std::string& path, const Variables& given) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    throw Error("cannot read the file: there is none")
        .at(path)
        .expected("a local config.json; nothing is downloaded")
        .hint(known_model_hint(path));
  }
  const FileText text(path, Bytes(kMaxText));
  return parse_hf_config(text.view(), path, given);
}

}  // namespace lockstep
