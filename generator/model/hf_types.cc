#include "generator/model/hf_types.h"

#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMaxSize = std::int64_t{1} << 40;

using Fields = std::vector<HfField>;

/// The sizes that every decoder has, by the names that its family gives them, and more.
Fields sizes(std::string_view hidden, std::string_view layers, std::string_view heads,
             Fields more) {
  more.insert(more.begin(), {{hidden, "hidden"},
                             {layers, "layers"},
                             {heads, "heads"},
                             {"vocab_size", "vocabulary"},
                             {"tie_word_embeddings", "tied", false}});
  return more;
}
Fields decoder(Fields more) {
  return sizes("hidden_size", "num_hidden_layers", "num_attention_heads", std::move(more));
}
Fields gpt2_decoder(Fields more) {
  more.push_back({"n_inner", "ffn", false});
  return sizes("n_embd|hidden_size", "n_layer|num_hidden_layers", "n_head|num_attention_heads",
               std::move(more));
}
Fields mpt_decoder(Fields more) { return sizes("d_model", "n_layers", "n_heads", std::move(more)); }

bool flag_or(const JsonView& config, std::string_view key, bool otherwise) {
  return has_hf_field(config, key) ? hf_field(config, key) != 0 : otherwise;
}

/// With attention and MLP side by side one norm serves both.
void one_norm_if_parallel(const JsonView& /*config*/, Variables& variables) {
  variables["norms"] = variables["parallel"] != 0 ? 1 : 2;
}

/// Falcon's first models have one key and value head, or as many as heads; the "new decoder
/// architecture" has a number of them and, unless it says 1, a norm each for attention and MLP.
void adapt_falcon(const JsonView& config, Variables& variables) {
  const bool newer = flag_or(config, "new_decoder_architecture", false);
  if (!newer) {
    variables["kv_heads"] = flag_or(config, "multi_query", true) ? 1 : variables["heads"];
  }
  const bool parallel = flag_or(config, "parallel_attn", true);
  const std::int64_t norms = has_hf_field(config, "num_ln_in_parallel_attn")
                                 ? hf_field(config, "num_ln_in_parallel_attn")
                                 : (newer ? 2 : 1);
  variables["parallel"] = parallel ? 1 : 0;
  variables["norms"] = !parallel || norms == 2 ? 2 : 1;
}

void adapt_gpt_bigcode(const JsonView& config, Variables& variables) {
  variables["kv_heads"] = flag_or(config, "multi_query", true) ? 1 : variables["heads"];
}

void adapt_chatglm(const JsonView& config, Variables& variables) {
  if (!flag_or(config, "multi_query_attention", false)) {
    variables["kv_heads"] = variables["heads"];
  }
}

void adapt_mpt(const JsonView& config, Variables& variables) {
  if (has_hf_field(config, "expansion_ratio")) {
    variables["ffn"] =
        variables["hidden"] * static_cast<double>(hf_field(config, "expansion_ratio"));
  }
}

void adapt_llama4(const JsonView& config, Variables& variables) {
  if (variables.count("step") > 0 && variables["step"] != 1 && variables["step"] != 2) {
    throw config["interleave_moe_layer_step"]
        .error("experts in so few layers are not built in")
        .expected("1 or 2")
        .hint("a model file can say so: docs/formats/model.md");
  }
  if (!config.has("moe_layers") || config["moe_layers"].json().is_null()) {
    return;
  }
  const JsonView listed = config["moe_layers"];
  const auto step = static_cast<std::int64_t>(variables.count("step") > 0 ? variables["step"] : 1);
  const auto layers = static_cast<std::int64_t>(variables["layers"]);
  bool every = static_cast<std::int64_t>(listed.size()) == layers / step;
  listed.each([&](const JsonView& layer) {
    every = every && (layer.integer(0, kMaxSize) + 1) % step == 0;
  });
  if (!every) {
    throw listed.error("other layers have experts than are built in")
        .expected(fmt::format("each layer of which (number + 1) divides by "
                              "interleave_moe_layer_step, {}",
                              step))
        .hint("a model file can say so: docs/formats/model.md");
  }
}

/// OPT-350m's embeddings are narrower than its layers.
void adapt_opt(const JsonView& config, Variables& variables) {
  if (has_hf_field(config, "word_embed_proj_dim") &&
      static_cast<double>(hf_field(config, "word_embed_proj_dim")) != variables["hidden"]) {
    throw config["word_embed_proj_dim"]
        .error("embeddings of another width than the layers are not built in for opt")
        .expected(fmt::format("hidden_size, {}", variables["hidden"]))
        .hint("a model file can say so: docs/formats/model.md");
  }
}

void adapt_t5(const JsonView& config, Variables& variables) {
  if (has_hf_field(config, "feed_forward_proj")) {
    variables["gated"] = config["feed_forward_proj"].string().starts_with("gated") ? 1 : 0;
  }
}

/// A config.json names the classes and leaves their number out; two, the default, it does not name
/// either.
void adapt_vit(const JsonView& config, Variables& variables) {
  if (has_hf_field(config, "id2label")) {
    variables["classes"] = static_cast<double>(config["id2label"].size());
  }
}

}  // namespace

std::vector<HfType> hf_types() {
  const HfField ffn{"intermediate_size", "ffn"};
  const HfField kv_heads{"num_key_value_heads", "kv_heads", false};
  const HfField head_dim{"head_dim", "head_dim", false};
  const HfField gemma_head_dim{"head_dim", "head_dim"};
  const HfField window{"sliding_window", "window", false};
  const HfField topk{"num_experts_per_tok", "topk"};
  const HfField local_experts{"num_local_experts", "experts"};
  const HfField expert_ffn{"intermediate_size", "expert_ffn"};
  const HfField moe_ffn{"moe_intermediate_size", "expert_ffn"};
  const HfField first_dense{"first_k_dense_replace", "first_dense"};
  const HfField shared_experts{"n_shared_experts", "shared_experts", false};
  const HfField qkv_bias{"attention_bias", "qkv_bias", false};
  const HfField out_bias{"attention_bias", "out_bias", false};
  const std::vector<HfDemand> all_sparse{{"decoder_sparse_step", 1}, {"use_sliding_window", 0}};
  const std::vector<HfDemand> each_sparse{{"moe_layer_freq", 1}, {"attention_bias", 0}};
  const std::vector<HfDemand> no_bias{{"attention_bias", 0}};
  const Fields deepseek = decoder({first_dense,
                                   {"q_lora_rank", "q_lora", false},
                                   {"kv_lora_rank", "kv_lora"},
                                   {"qk_nope_head_dim", "nope_dim"},
                                   {"qk_rope_head_dim", "rope_dim"},
                                   {"v_head_dim", "value_dim"},
                                   ffn,
                                   {"n_routed_experts", "experts"},
                                   topk,
                                   moe_ffn,
                                   shared_experts});
  const Variables no_latent{{"q_lora", 0}, {"shared_experts", 0}};
  const Variables no_latent_no_bias{{"q_lora", 0}, {"shared_experts", 0}, {"router_bias", 0}};
  // A mixture of experts in every layer, without what GLM-4.5 has beyond Mixtral.
  const Variables sparse{
      {"first_dense", 0}, {"shared_experts", 0}, {"router_bias", 0}, {"qkv_bias", 0}};
  const auto sparse_with = [&](Variables more) {
    more.insert(sparse.begin(), sparse.end());
    return more;
  };
  const Fields encoder{{"hidden_size", "hidden"},
                       {"num_hidden_layers", "layers"},
                       {"num_attention_heads", "heads"},
                       ffn};
  Fields bert = encoder, vit = encoder;
  bert.insert(bert.end(), {{"vocab_size", "vocabulary"},
                           {"max_position_embeddings", "positions"},
                           {"type_vocab_size", "types"}});
  vit.insert(vit.end(), {{"image_size", "image"},
                         {"patch_size", "patch"},
                         {"num_channels", "channels", false},
                         {"num_labels", "classes", false},
                         {"qkv_bias", "qkv_bias", false}});
  // GPT-J and CodeGen: biases in the MLP and the head only.
  const Variables gptj{{"norms", 1}, {"qkv_bias", 0}, {"out_bias", 0}, {"head_bias", 1}};
  return {
      {"baichuan", "llama", decoder({ffn}), {}, {}},
      {"bert", "bert", bert, {}, {}},
      {"bloom",
       "gpt-neox",
       {{"hidden_size|n_embed", "hidden"},
        {"n_layer|num_hidden_layers", "layers"},
        {"n_head|num_attention_heads", "heads"},
        {"vocab_size", "vocabulary"},
        {"tie_word_embeddings", "tied", false}},
       {{"parallel", 0}, {"embedding_norm", 1}, {"tied", 1}},
       {}},
      {"chatglm",
       "llama",
       {{"hidden_size", "hidden"},
        {"num_layers|num_hidden_layers", "layers"},
        {"num_attention_heads", "heads"},
        {"multi_query_group_num", "kv_heads", false},
        {"kv_channels", "head_dim", false},
        {"ffn_hidden_size", "ffn"},
        {"padded_vocab_size", "vocabulary"},
        {"add_qkv_bias", "qkv_bias", false},
        {"tie_word_embeddings", "tied", false}},
       {},
       {{"add_bias_linear", 0}, {"rmsnorm", 1}, {"post_layer_norm", 1}},
       adapt_chatglm},
      {"codegen", "gpt-neox", gpt2_decoder({}), gptj, {}},
      {"cohere",
       "gpt-neox",
       decoder({kv_heads, head_dim, ffn, {"use_qk_norm", "qk_norm", false}, qkv_bias, out_bias}),
       {{"norms", 1},
        {"norm_bias", 0},
        {"gated", 1},
        {"qkv_bias", 0},
        {"out_bias", 0},
        {"mlp_bias", 0},
        {"tied", 1}},
       {}},
      {"cohere2",
       "gpt-neox",
       decoder({kv_heads,
                head_dim,
                ffn,
                window,
                {"sliding_window_pattern|_sliding_window_pattern", "pattern", false},
                qkv_bias,
                out_bias}),
       {{"norms", 1},
        {"norm_bias", 0},
        {"gated", 1},
        {"qkv_bias", 0},
        {"out_bias", 0},
        {"mlp_bias", 0},
        {"pattern", 4},
        {"tied", 1}},
       {}},
      {"dbrx",
       "glm4-moe",
       mpt_decoder({{"attn_config.kv_n_heads", "kv_heads"},
                    {"ffn_config.moe_num_experts", "experts"},
                    {"ffn_config.moe_top_k", "topk"},
                    {"ffn_config.ffn_hidden_size", "expert_ffn"}}),
       sparse,
       {}},
      {"deepseek_v2", "deepseek", deepseek, no_latent_no_bias, each_sparse},
      {"deepseek_v3", "deepseek", deepseek, no_latent, each_sparse},
      {"ernie4_5",
       "llama",
       decoder({kv_heads,
                head_dim,
                ffn,
                {"use_bias", "qkv_bias", false},
                {"use_bias", "out_bias", false},
                {"use_bias", "mlp_bias", false}}),
       {{"tied", 1}},
       {}},
      {"ernie4_5_moe",
       "glm4-moe",
       decoder({kv_heads,
                head_dim,
                ffn,
                {"moe_layer_start_index", "first_dense"},
                {"moe_num_experts", "experts"},
                {"moe_k", "topk"},
                moe_ffn,
                {"moe_num_shared_experts", "shared_experts", false}}),
       {{"shared_experts", 0}, {"qkv_bias", 0}, {"tied", 1}},
       {{"use_bias", 0}, {"moe_layer_interval", 1}}},
      {"falcon",
       "gpt-neox",
       decoder({{"num_kv_heads|n_head_kv", "kv_heads", false},
                {"ffn_hidden_size", "ffn", false},
                {"bias", "qkv_bias", false},
                {"bias", "out_bias", false},
                {"bias", "mlp_bias", false}}),
       {{"qkv_bias", 0}, {"out_bias", 0}, {"mlp_bias", 0}, {"tied", 1}},
       {},
       adapt_falcon},
      {"gemma",
       "gemma",
       decoder({kv_heads, gemma_head_dim, ffn}),
       {{"pattern", 1}, {"window", 0}, {"post_norm", 0}},
       no_bias},
      {"gemma2", "gemma", decoder({kv_heads, gemma_head_dim, ffn, window}), {}, no_bias},
      // The published configs leave out what its class has by default.
      {"gemma3_text",
       "gemma",
       {{"hidden_size", "hidden"},
        {"num_hidden_layers", "layers"},
        {"num_attention_heads", "heads", false},
        {"vocab_size", "vocabulary", false},
        {"tie_word_embeddings", "tied", false},
        kv_heads,
        head_dim,
        ffn,
        window,
        {"sliding_window_pattern|_sliding_window_pattern", "pattern", false}},
       {{"heads", 8},
        {"kv_heads", 4},
        {"head_dim", 256},
        {"vocabulary", 262'208},
        {"pattern", 6},
        {"qk_norm", 1}},
       no_bias},
      {"glm", "llama", decoder({kv_heads, head_dim, ffn, qkv_bias}), {}, {}},
      {"glm4", "llama", decoder({kv_heads, head_dim, ffn, qkv_bias}), {{"post_norm", 1}}, {}},
      {"glm4_moe",
       "glm4-moe",
       decoder({first_dense,
                kv_heads,
                head_dim,
                ffn,
                {"n_routed_experts", "experts"},
                topk,
                moe_ffn,
                shared_experts,
                {"use_qk_norm", "qk_norm", false},
                qkv_bias}),
       {{"shared_experts", 0}, {"qkv_bias", 0}},
       {}},
      {"gpt2",
       "gpt",
       gpt2_decoder({{"n_positions", "positions"}}),
       {},
       {{"add_cross_attention", 0}}},
      {"gpt_bigcode",
       "gpt-neox",
       gpt2_decoder({{"n_positions", "positions"}}),
       {{"parallel", 0}, {"tied", 1}},
       {},
       adapt_gpt_bigcode},
      {"gpt_neox",
       "gpt-neox",
       decoder({ffn, {"use_parallel_residual", "parallel", false}, qkv_bias, out_bias}),
       {},
       {}},
      {"gpt_oss",
       "gpt-oss",
       decoder({kv_heads, head_dim, window, local_experts, topk, expert_ffn}),
       {},
       {{"attention_bias", 1}}},
      {"gptj", "gpt-neox", gpt2_decoder({}), gptj, {}},
      {"granite",
       "llama",
       decoder({kv_heads, head_dim, ffn, qkv_bias, out_bias, {"mlp_bias", "mlp_bias", false}}),
       {},
       {}},
      {"granitemoe",
       "glm4-moe",
       decoder({kv_heads, local_experts, topk, expert_ffn, qkv_bias, out_bias}),
       sparse,
       {}},
      {"internlm2",
       "llama",
       decoder({kv_heads, ffn, {"bias", "qkv_bias", false}, {"bias", "out_bias", false}}),
       {},
       {}},
      {"kimi_k2", "deepseek", deepseek, no_latent, each_sparse},
      {"llama",
       "llama",
       decoder({kv_heads, head_dim, ffn, qkv_bias, out_bias, {"mlp_bias", "mlp_bias", false}}),
       {},
       {}},
      {"llama4_text",
       "llama4",
       decoder({kv_heads,
                head_dim,
                {"attention_chunk_size", "chunk", false},
                {"interleave_moe_layer_step", "step", false},
                {"intermediate_size_mlp", "ffn"},
                local_experts,
                topk,
                expert_ffn}),
       {},
       no_bias,
       adapt_llama4},
      {"minimax_m2",
       "glm4-moe",
       decoder({kv_heads, head_dim, local_experts, topk, expert_ffn}),
       {{"first_dense", 0}, {"shared_experts", 0}, {"qkv_bias", 0}, {"qk_norm", 2}},
       {{"use_qk_norm", 1}, {"shared_intermediate_size", 0}}},
      {"mistral", "llama", decoder({kv_heads, head_dim, ffn, window}), {}, {}},
      {"mixtral",
       "mixtral",
       decoder({kv_heads, head_dim, window, local_experts, topk, expert_ffn}),
       {},
       {}},
      {"mpt",
       "gpt-neox",
       mpt_decoder({}),
       {{"parallel", 0},
        {"norm_bias", 0},
        {"qkv_bias", 0},
        {"out_bias", 0},
        {"mlp_bias", 0},
        {"tied", 1}},
       {{"no_bias", 1}, {"attn_config.alibi", 1}, {"attn_config.qk_ln", 0}},
       adapt_mpt},
      {"nemotron",
       "nemotron",
       decoder({kv_heads, head_dim, ffn}),
       {},
       {{"attention_bias", 0}, {"mlp_bias", 0}}},
      {"olmo2",
       "llama",
       decoder({kv_heads, head_dim, ffn}),
       {{"pre_norm", 0}, {"post_norm", 1}, {"qk_norm", 2}},
       no_bias},
      {"olmoe", "glm4-moe", decoder({kv_heads, {"num_experts", "experts"}, topk, expert_ffn}),
       sparse_with({{"qk_norm", 2}}), no_bias},
      {"opt",
       "gpt",
       decoder({{"ffn_dim", "ffn"}, {"max_position_embeddings", "positions", true, 2}}),
       {},
       {{"do_layer_norm_before", 1}, {"enable_bias", 1}, {"layer_norm_elementwise_affine", 1}},
       adapt_opt},
      {"phi",
       "gpt-neox",
       decoder({kv_heads, ffn}),
       {{"norms", 1}, {"head_bias", 1}},
       {{"qk_layernorm", 0}}},
      {"phi3", "llama", decoder({kv_heads, head_dim, ffn, window}), {}, {}},
      {"phimoe",
       "glm4-moe",
       decoder({kv_heads,
                head_dim,
                window,
                local_experts,
                topk,
                expert_ffn,
                qkv_bias,
                out_bias,
                {"lm_head_bias", "head_bias", false}}),
       sparse_with({{"norm_bias", 1}}),
       {}},
      {"qwen2",
       "llama",
       decoder({kv_heads, head_dim, ffn}),
       {{"qkv_bias", 1}},
       {{"use_sliding_window", 0}}},
      {"qwen2_moe",
       "glm4-moe",
       decoder({kv_heads,
                head_dim,
                {"num_experts", "experts"},
                topk,
                moe_ffn,
                {"shared_expert_intermediate_size", "shared_ffn"}}),
       {{"first_dense", 0}, {"router_bias", 0}, {"qkv_bias", 1}, {"shared_gate", 1}},
       all_sparse},
      {"qwen3",
       "qwen3",
       decoder({kv_heads, head_dim, ffn, qkv_bias, out_bias}),
       {},
       {{"use_sliding_window", 0}}},
      {"qwen3_moe",
       "qwen3-moe",
       decoder({kv_heads, head_dim, {"num_experts", "experts"}, topk, moe_ffn, qkv_bias, out_bias}),
       {},
       all_sparse},
      {"seed_oss",
       "llama",
       decoder({kv_heads,
                head_dim,
                ffn,
                qkv_bias,
                {"attention_out_bias", "out_bias", false},
                {"mlp_bias", "mlp_bias", false}}),
       {},
       {}},
      {"smollm3",
       "llama",
       decoder({kv_heads, head_dim, ffn, qkv_bias, out_bias, {"mlp_bias", "mlp_bias", false}}),
       {{"tied", 1}},
       {{"use_sliding_window", 0}}},
      {"stablelm",
       "gpt-neox",
       decoder({kv_heads,
                ffn,
                {"use_qkv_bias", "qkv_bias", false},
                {"use_parallel_residual", "parallel", false}}),
       {{"parallel", 0}, {"gated", 1}, {"qkv_bias", 0}, {"out_bias", 0}, {"mlp_bias", 0}},
       {{"qk_layernorm", 0}},
       one_norm_if_parallel},
      {"starcoder2",
       "gpt-neox",
       decoder({kv_heads,
                head_dim,
                ffn,
                window,
                {"use_bias", "qkv_bias", false},
                {"use_bias", "out_bias", false},
                {"use_bias", "mlp_bias", false}}),
       {{"parallel", 0}, {"tied", 1}},
       {}},
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
       {},
       adapt_t5},
      {"vit", "vit", vit, {{"classes", 2}}, {}, adapt_vit},
  };
}

std::vector<HfForeign> hf_foreign_types() {
  constexpr std::string_view kLinear = "layers of linear attention", kSpace = "state-space layers",
                             kConvolution = "convolution layers";
  return {{"bamba", kSpace},
          {"falcon_h1", kSpace},
          {"falcon_mamba", kSpace},
          {"granitemoehybrid", kSpace},
          {"jamba", kSpace},
          {"kimi_linear", kLinear},
          {"lfm2", kConvolution},
          {"mamba", kSpace},
          {"mamba2", kSpace},
          {"minimax", kLinear},
          {"minimax_m1", kLinear},
          {"minimax_text_01", kLinear},
          {"nemotron_h", kSpace},
          {"qwen3_next", kLinear},
          {"recurrent_gemma", "recurrent layers"},
          {"rwkv", "recurrent layers"},
          {"zamba", kSpace},
          {"zamba2", kSpace}};
}

namespace {

/// The field of the first alternative that is there.
std::optional<JsonView> find_field(const JsonView& config, std::string_view key) {
  for (const std::string_view one : split(key, '|')) {
    JsonView view = config;
    bool found = true;
    for (const std::string_view part : split(one, '.')) {
      found = found && view.json().is_object() && view.has(part) && !view[part].json().is_null();
      if (found) {
        view = view[part];
      }
    }
    if (found) {
      return view;
    }
  }
  return std::nullopt;
}

}  // namespace

bool has_hf_field(const JsonView& config, std::string_view key) {
  return find_field(config, key).has_value();
}

std::int64_t hf_field(const JsonView& config, std::string_view key) {
  const std::optional<JsonView> found = find_field(config, key);
  if (!found) {
    JsonView view = config;  // the first alternative's error
    for (const std::string_view part : split(split(key, '|').front(), '.')) {
      view = view[part];
    }
    return view.integer(0, kMaxSize);
  }
  return found->json().is_boolean() ? (found->boolean() ? 1 : 0) : found->integer(0, kMaxSize);
}

}  // namespace lockstep
