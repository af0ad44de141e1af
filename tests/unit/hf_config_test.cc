#include "generator/model/hf_config.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "generator/model/parameters.h"
#include "generator/model/zoo.h"

namespace lockstep::hf_config_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

double total(std::string_view config) {
  return model_parameters(parse_hf_config(config, "config.json")).total;
}

std::string failure(std::string_view config) {
  try {
    parse_hf_config(config, "config.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

double zoo(std::string_view name) { return model_parameters(find_model(name)).total; }

// Phi-3-mini and Phi-4: the parameters of their published weights, 3,821,079,552 and
// 14,659,507,200.
TEST(HfConfig, KnowsPhi3) {
  EXPECT_EQ(total(R"({"model_type": "phi3", "hidden_size": 3072, "num_hidden_layers": 32,
                      "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 32064,
                      "intermediate_size": 8192, "sliding_window": 2047,
                      "tie_word_embeddings": false})"),
            3'821'079'552);
  EXPECT_EQ(total(R"({"model_type": "phi3", "hidden_size": 5120, "num_hidden_layers": 40,
                      "num_attention_heads": 40, "num_key_value_heads": 10, "vocab_size": 100352,
                      "intermediate_size": 17920, "sliding_window": null,
                      "tie_word_embeddings": false})"),
            14'659'507'200);
}

TEST(HfConfig, AgreesWithTheZoo) {
  EXPECT_EQ(total(R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
                      "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
                      "intermediate_size": 14336, "head_dim": null, "rope_theta": 500000.0})"),
            zoo("llama3-8b"));
  EXPECT_EQ(total(R"({"model_type": "mixtral", "hidden_size": 4096, "num_hidden_layers": 32,
                      "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000,
                      "intermediate_size": 14336, "num_local_experts": 8,
                      "num_experts_per_tok": 2, "sliding_window": null})"),
            zoo("mixtral-8x7b"));
  EXPECT_EQ(total(R"({"model_type": "deepseek_v2", "hidden_size": 2048, "num_hidden_layers": 27,
                      "num_attention_heads": 16, "vocab_size": 102400, "intermediate_size": 10944,
                      "first_k_dense_replace": 1, "q_lora_rank": null, "kv_lora_rank": 512,
                      "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
                      "n_routed_experts": 64, "num_experts_per_tok": 6, "moe_layer_freq": 1,
                      "moe_intermediate_size": 1408, "n_shared_experts": 2})"),
            zoo("deepseek-v2-lite"));
  EXPECT_EQ(total(R"({"model_type": "gemma2", "hidden_size": 3584, "num_hidden_layers": 42,
                      "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256,
                      "intermediate_size": 14336, "vocab_size": 256000,
                      "sliding_window": 4096})"),
            zoo("gemma2-9b"));
  EXPECT_EQ(total(R"({"model_type": "gpt_oss", "hidden_size": 2880, "num_hidden_layers": 24,
                      "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
                      "intermediate_size": 2880, "num_local_experts": 32,
                      "num_experts_per_tok": 4, "sliding_window": 128, "vocab_size": 201088})"),
            zoo("gpt-oss-20b"));
  EXPECT_EQ(total(R"({"model_type": "kimi_k2", "hidden_size": 7168, "num_hidden_layers": 61,
                      "num_attention_heads": 64, "vocab_size": 163840, "intermediate_size": 18432,
                      "first_k_dense_replace": 1, "q_lora_rank": 1536, "kv_lora_rank": 512,
                      "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
                      "n_routed_experts": 384, "num_experts_per_tok": 8, "moe_layer_freq": 1,
                      "moe_intermediate_size": 2048, "n_shared_experts": 1})"),
            zoo("kimi-k2"));
  EXPECT_EQ(total(R"({"model_type": "llama4_text", "hidden_size": 5120, "num_hidden_layers": 48,
                      "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128,
                      "intermediate_size": 8192, "intermediate_size_mlp": 16384,
                      "num_local_experts": 128, "num_experts_per_tok": 1,
                      "interleave_moe_layer_step": 2, "vocab_size": 202048})"),
            zoo("llama4-maverick"));
  EXPECT_EQ(total(R"({"model_type": "nemotron", "hidden_size": 18432, "num_hidden_layers": 96,
                      "num_attention_heads": 96, "num_key_value_heads": 8,
                      "intermediate_size": 73728, "vocab_size": 256000})"),
            zoo("nemotron4-340b"));
}

/// GPT-2 small: 124,439,808 parameters (Radford et al. 2019; its released weights).
TEST(HfConfig, Gpt2) {
  EXPECT_EQ(total(R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12,
                      "n_inner": null, "vocab_size": 50257, "n_positions": 1024})"),
            124'439'808);
}

/// T5 1.1 small: 76,961,152 parameters, gated and with a head of its own.
TEST(HfConfig, GatedT5) {
  EXPECT_EQ(total(R"({"model_type": "t5", "d_model": 512, "num_layers": 8, "num_heads": 6,
                      "num_decoder_layers": 8, "d_kv": 64, "d_ff": 1024, "vocab_size": 32128,
                      "feed_forward_proj": "gated-gelu", "tie_word_embeddings": false})"),
            76'961'152);
}

/// --num-layers is of encoder and decoder each, also where the config names both.
// Patches 3 x 8 x 8 x 64 + 64, class 64, positions 17 x 64; two layers of norms 4 x 64, qkv 3 x 64
// x 64, out 64 x 65, MLP 2 x 64 x 96 + 96 + 64; norm 2 x 64: 71,936. A class has 65, a bias of
// queries, keys and values 2 x 3 x 64 = 384.
TEST(HfConfig, VitsClassesAndBiases) {
  const auto vit = [](const std::string& more) {
    return total(R"({"model_type": "vit", "hidden_size": 64, "num_hidden_layers": 2,
                     "num_attention_heads": 4, "intermediate_size": 96, "image_size": 32,
                     "patch_size": 8)" +
                 more + "}");
  };
  const std::string three = R"(, "id2label": {"0": "cat", "1": "dog", "2": "tree"})";
  EXPECT_EQ(vit(R"(, "qkv_bias": false)" + three), 71'936 + 3 * 65);
  EXPECT_EQ(vit(three), 71'936 + 3 * 65 + 384);
  EXPECT_EQ(vit(R"(, "num_labels": 10)"), 71'936 + 10 * 65 + 384);
  EXPECT_EQ(vit(R"(, "id2label": null)"), 71'936 + 2 * 65 + 384);
  EXPECT_THAT(failure(R"({"model_type": "vit", "hidden_size": 64, "num_hidden_layers": 2,
                          "num_attention_heads": 4, "intermediate_size": 96, "image_size": 32,
                          "patch_size": 8, "id2label": 3})"),
              HasSubstr("id2label: expected an array or an object"));
}

TEST(HfConfig, LayersOfT5AreOfEncoderAndDecoderEach) {
  const Model model = parse_hf_config(
      R"({"model_type": "t5", "d_model": 512, "num_layers": 8, "num_decoder_layers": 8,
          "num_heads": 6, "d_kv": 64, "d_ff": 1024, "vocab_size": 32128})",
      "config.json", {{"layers", 4}});
  ASSERT_EQ(model.blocks.size(), 2U);
  EXPECT_EQ(model.blocks[0].layers, 4);
  EXPECT_EQ(model.blocks[1].layers, 4);
}

/// Where Hugging Face's attention reads head_dim, ours does; where it has hidden / heads, another
/// width is refused.
TEST(HfConfig, ReadsHeadDimWhereHuggingFaceDoes) {
  const auto config = [](const std::string& type, int width) {
    return fmt::format(R"({{"model_type": "{}", "hidden_size": 256, "num_hidden_layers": 1,
        "num_attention_heads": 4, "vocab_size": 100, "intermediate_size": 32, "head_dim": {},
        "num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 1,
        "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32}})",
                       type, width);
  };
  for (const std::string type :
       {"starcoder2", "cohere", "olmo2", "smollm3", "qwen2_moe", "phimoe"}) {
    const Model model = parse_hf_config(config(type, 32), "config.json");
    EXPECT_EQ(model.variables.at("head_dim"), 32) << type;
  }
  for (const std::string type : {"olmoe", "granitemoe", "stablelm", "internlm2", "baichuan"}) {
    EXPECT_THAT(failure(config(type, 32)),
                AllOf(HasSubstr("head_dim"), HasSubstr("expected: 64, hidden_size /")))
        << type;
    EXPECT_EQ(parse_hf_config(config(type, 64), "config.json").variables.at("head_dim"), 64);
  }
}

/// The defaults of Hugging Face, not those of our architecture, stand in for what is absent.
TEST(HfConfig, AbsentHeadsFollowFromTheOthers) {
  const Model model =
      parse_hf_config(R"({"model_type": "mixtral", "hidden_size": 256, "num_hidden_layers": 1,
                          "num_attention_heads": 4, "vocab_size": 100, "intermediate_size": 32,
                          "num_local_experts": 4, "num_experts_per_tok": 1})",
                      "config.json");
  EXPECT_EQ(model.variables.at("kv_heads"), 4);
  EXPECT_EQ(model.variables.at("head_dim"), 64);
}

/// By hand: a layer's attention and norms have 8 (2 + 2) 4 + 8 8 + 2 8 = 208 weights, its MLP
/// 3 8 16 = 384, its experts 8 4 + (4 + 1) 3 8 4 = 512; embedding, head and last norm 2 32 8 + 8.
TEST(HfConfig, Llama4sExpertsAreInEverySecondLayerToTheLast) {
  const auto of_layers = [](int layers, const std::string& more) {
    return fmt::format(R"({{"model_type": "llama4_text", "hidden_size": 8,
        "num_hidden_layers": {}, "num_attention_heads": 2, "num_key_value_heads": 1,
        "head_dim": 4, "intermediate_size": 4, "intermediate_size_mlp": 16,
        "num_local_experts": 4, "num_experts_per_tok": 1, "vocab_size": 32{}}})",
                       layers, more);
  };
  for (const int layers : {4, 5, 6, 7, 9}) {
    const int sparse = layers / 2;
    EXPECT_EQ(total(of_layers(layers, R"(, "interleave_moe_layer_step": 2)")),
              520 + layers * 208 + sparse * 512 + (layers - sparse) * 384)
        << layers;
    EXPECT_EQ(total(of_layers(layers, R"(, "interleave_moe_layer_step": 1)")),
              520 + layers * (208 + 512))
        << layers;
  }
  const std::string step = R"(, "interleave_moe_layer_step": 2, "moe_layers": )";
  EXPECT_EQ(total(of_layers(5, step + "[1, 3]")), 520 + 5 * 208 + 2 * 512 + 3 * 384);
  EXPECT_EQ(total(of_layers(5, step + "null")), 520 + 5 * 208 + 2 * 512 + 3 * 384);
  EXPECT_THAT(failure(of_layers(5, step + "[0, 2, 4]")),
              HasSubstr("moe_layers: other layers have experts than are built in"));
  EXPECT_THAT(failure(of_layers(5, step + "[1]")), HasSubstr("moe_layers: other layers"));
}

/// null is no window, not the architecture's; a number is one, of Mixtral as of Mistral.
TEST(HfConfig, AWindowIsWhatTheConfigSays) {
  const auto window = [](const std::string& type, const std::string& value) {
    const Model model = parse_hf_config(
        fmt::format(R"({{"model_type": "{}", "hidden_size": 256, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
            "vocab_size": 100, "intermediate_size": 32, "num_local_experts": 4,
            "num_experts_per_tok": 1, "sliding_window": {}}})",
                    type, value),
        "config.json");
    for (const Module& module : model.blocks.front().modules) {
      if (module.kind == ModuleKind::kAttention) {
        return module.window;
      }
    }
    return std::int64_t{-1};
  };
  for (const std::string type : {"mixtral", "mistral", "gemma2"}) {
    EXPECT_EQ(window(type, "128"), 128) << type;
    EXPECT_EQ(window(type, "null"), 0) << type;
  }
}

TEST(HfConfig, TypicalSlipsGetAHint) {
  EXPECT_THAT(failure("name: llama"), HasSubstr("--model-file reads a model file"));
  EXPECT_THAT(failure(R"({"model_type": "llama4", "text_config": {}})"),
              HasSubstr("stands under text_config"));
  EXPECT_THAT(failure(R"({"model_type": "llama4"})"),
              HasSubstr("did you mean llama? Otherwise a model file"));
}

/// Layers of a kind that no architecture has are named, not likened to a model with a like name.
TEST(HfConfig, ForeignLayersAreNamed) {
  const std::string text = failure(R"({"model_type": "qwen3_next"})");
  EXPECT_THAT(text, HasSubstr("model_type 'qwen3_next' has layers of linear attention"));
  EXPECT_THAT(text, Not(HasSubstr("did you mean")));
  EXPECT_THAT(failure(R"({"model_type": "mamba"})"), HasSubstr("state-space layers"));
}

/// What a field says about layers is heeded, or refused.
TEST(HfConfig, FieldsThatChangeLayers) {
  const std::string opt = R"({"model_type": "opt", "hidden_size": 1024, "num_hidden_layers": 24,
      "num_attention_heads": 16, "ffn_dim": 4096, "vocab_size": 50272,
      "max_position_embeddings": 2048)";
  EXPECT_THAT(failure(opt + R"(, "word_embed_proj_dim": 512})"), HasSubstr("word_embed_proj_dim"));
  EXPECT_THAT(failure(opt + R"(, "do_layer_norm_before": false})"),
              HasSubstr("do_layer_norm_before"));
  const std::string llama = R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
      "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100)";
  // Biases of q, k, v, o, and of gate, up and down.
  EXPECT_EQ(total(llama + R"(, "attention_bias": true})") - total(llama + "}"), 2 * 4 * 64);
  EXPECT_EQ(total(llama + R"(, "mlp_bias": true})") - total(llama + "}"), 2 * (2 * 128 + 64));
  EXPECT_THAT(failure(R"({"model_type": "dbrx", "d_model": 64, "n_heads": 4, "n_layers": 2,
                          "vocab_size": 100, "attn_config": {"kv_n_heads": 2}, "ffn_config": {}})"),
              HasSubstr("ffn_config: the field \"moe_num_experts\" is missing"));
}

// Qwen2 0.5B's 494,032,768, and with heads of 128 for 64 in 24 layers: queries and output 896 x 896
// more each, keys and values 896 x 128 each, biases 896 + 2 x 128.
TEST(HfConfig, HeadsOfAWidthOfTheirOwn) {
  const std::string qwen2 =
      R"({"model_type": "qwen2", "hidden_size": 896, "num_hidden_layers": 24,
          "num_attention_heads": 14, "num_key_value_heads": 2, "intermediate_size": 4864,
          "vocab_size": 151936, "tie_word_embeddings": true)";
  EXPECT_EQ(total(qwen2 + "}"), 494'032'768);
  EXPECT_EQ(total(qwen2 + R"(, "head_dim": 128})"),
            494'032'768 + 24 * (2 * 896 * 896 + 2 * 896 * 128 + 896 + 2 * 128));
}

TEST(HfConfig, LayersThatDifferAreRefused) {
  EXPECT_THAT(failure(R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12,
                          "vocab_size": 50257, "n_positions": 1024,
                          "add_cross_attention": true})"),
              HasSubstr("add_cross_attention: layers of this gpt2 differ"));
}

TEST(HfConfig, ErrorsNameTheField) {
  EXPECT_THAT(failure(R"({"model_type": "lama"})"), HasSubstr("did you mean llama?"));
  EXPECT_THAT(failure(R"({"model_type": "xlnet"})"), HasSubstr("qwen3_moe"));
  EXPECT_THAT(failure("{}"), HasSubstr("model_type"));
  EXPECT_THAT(failure(R"({"model_type": "gpt2", "n_embd": 768})"), HasSubstr("n_layer"));
  EXPECT_THAT(failure(R"({"model_type": "gpt2", "n_embd": "768"})"), HasSubstr("n_embd"));
  EXPECT_THAT(failure(R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 2, "n_head": 0,
                          "vocab_size": 10, "n_positions": 8})"),
              HasSubstr("heads: 0"));
  EXPECT_THAT(failure(R"({"model_type": "qwen3_moe", "decoder_sparse_step": 2})"),
              HasSubstr("decoder_sparse_step"));
  EXPECT_THAT(failure(R"({"model_type": "qwen3_moe", "mlp_only_layers": [3]})"),
              HasSubstr("mlp_only_layers"));
  EXPECT_THAT(failure("[1"), HasSubstr("config.json:1"));
}

}  // namespace
}  // namespace lockstep::hf_config_test
