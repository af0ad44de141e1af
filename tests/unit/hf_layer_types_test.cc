#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "generator/model/hf_config.h"

namespace lockstep::hf_layer_types_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// What a config's error says, "accepted" without one.
std::string verdict(const std::string& config, const Variables& given = {}) {
  try {
    parse_hf_config(config, "config.json", given);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

/// "sliding_attention" for s, "chunked_attention" for c, "full_attention" for f, "conv" for x.
std::string types(std::string_view letters) {
  std::string list;
  for (const char letter : letters) {
    list += fmt::format("{}\"{}\"", list.empty() ? "" : ", ",
                        letter == 's'   ? "sliding_attention"
                        : letter == 'c' ? "chunked_attention"
                        : letter == 'f' ? "full_attention"
                                        : "conv");
  }
  return "[" + list + "]";
}

/// A config with as many layers as `letters`, or `layers`, and the fields `more`.
std::string config(std::string_view type, std::string_view letters, std::string_view more,
                   std::size_t layers = 0) {
  return fmt::format(R"({{"model_type": "{}", "hidden_size": 64, "num_hidden_layers": {},
      "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 100,
      "intermediate_size": 128, "layer_types": {}{}{}}})",
                     type, layers > 0 ? layers : letters.size(), types(letters),
                     more.empty() ? "" : ", ", more);
}

constexpr std::string_view kGptOss = R"("sliding_window": 128, "num_local_experts": 4,
    "num_experts_per_tok": 2, "max_position_embeddings": 131072)";
constexpr std::string_view kLlama4 = R"("attention_chunk_size": 8192, "intermediate_size_mlp": 256,
    "interleave_moe_layer_step": 2, "num_local_experts": 4, "num_experts_per_tok": 1,
    "max_position_embeddings": 1048576)";

// As Transformers' classes make the lists, and their save_pretrained() writes them.
TEST(HfLayerTypes, ListsOfTransformersAreAccepted) {
  EXPECT_EQ(verdict(config("gpt_oss", "sfsfsf", kGptOss)), "accepted");
  EXPECT_EQ(verdict(config("gpt_oss", "sfsfs", kGptOss)), "accepted");
  EXPECT_EQ(verdict(config("gemma2", "sfsf", R"("sliding_window": 4096)")), "accepted");
  EXPECT_EQ(verdict(config("gemma3_text", "sssssfsssssfss",
                           R"("sliding_window": 512, "_sliding_window_pattern": 6)")),
            "accepted");
  EXPECT_EQ(verdict(config("gemma3_text", "sssssfss", R"("sliding_window": 512)")), "accepted");
  EXPECT_EQ(verdict(config("cohere2", "sssfsssfs", R"("sliding_window": 4096)")), "accepted");
  EXPECT_EQ(verdict(config("llama4_text", "cccfcccfcc", kLlama4)), "accepted");
  EXPECT_EQ(verdict(config("llama", "fff", "")), "accepted");
}

TEST(HfLayerTypes, AWindowThatIsNotUsedIsNone) {
  constexpr std::string_view unused =
      R"("use_sliding_window": false, "sliding_window": 32768, "max_window_layers": 28)";
  for (const char* type : {"qwen2", "qwen3", "smollm3"}) {
    EXPECT_EQ(verdict(config(type, "ffff", unused)), "accepted") << type;
  }
  EXPECT_EQ(verdict(config("phi3", "ff", R"("sliding_window": null)")), "accepted");
}

/// No sequence is longer than max_position_embeddings.
TEST(HfLayerTypes, AWindowOverAllTokensIsAsGoodAsNone) {
  const auto phi3 = [](int window) {
    return verdict(
        config("phi3", "ff",
               fmt::format(R"("sliding_window": {}, "max_position_embeddings": 4096)", window)));
  };
  EXPECT_EQ(phi3(4096), "accepted");
  EXPECT_THAT(phi3(4095), HasSubstr("layer_types[0]"));
}

TEST(HfLayerTypes, AnAbsentListSaysNothing) {
  std::string without = config("qwen2", "ff", "");
  without.replace(without.find(types("ff")), types("ff").size(), "null");
  EXPECT_EQ(verdict(without), "accepted");
}

TEST(HfLayerTypes, OtherLayersThanAreBuiltAreRefused) {
  EXPECT_THAT(
      verdict(config("gpt_oss", "sfss", kGptOss)),
      AllOf(HasSubstr("config.json: layer_types[3]: 'sliding_attention' is not what the built-in "
                      "layer 3 has"),
            HasSubstr("expected: full_attention"), HasSubstr("docs/formats/model.md")));
  EXPECT_THAT(verdict(config("gpt_oss", "fsfs", kGptOss)),
              AllOf(HasSubstr("layer_types[0]: 'full_attention'"),
                    HasSubstr("expected: sliding_attention or chunked_attention")));
  EXPECT_THAT(verdict(config("gemma3_text", "sfsfsf", R"("sliding_window": 512)")),
              HasSubstr("layer_types[1]: 'full_attention'"));
  EXPECT_THAT(verdict(config("llama4_text", "cccc", kLlama4)), HasSubstr("layer_types[3]"));
  EXPECT_THAT(verdict(config("qwen3", "ffss", R"("sliding_window": 4096)")),
              HasSubstr("layer_types[2]: 'sliding_attention'"));
  EXPECT_THAT(verdict(config("mistral", "ff", R"("sliding_window": 4096)")),
              HasSubstr("layer_types[0]: 'full_attention'"));
  EXPECT_THAT(verdict(config("llama", "fx", "")),
              AllOf(HasSubstr("layer_types[1]: 'conv'"), HasSubstr("expected: full_attention")));
}

TEST(HfLayerTypes, ThereIsOneForEachLayer) {
  EXPECT_THAT(verdict(config("llama", "fff", "", 4)),
              HasSubstr("config.json: layer_types: 3 types of 4 layers"));
  EXPECT_THAT(verdict(config("llama", "fff", "", 2)), HasSubstr("3 types of 2 layers"));
  EXPECT_THAT(verdict(R"({"model_type": "qwen2", "hidden_size": 64, "num_hidden_layers": 1,
                          "num_attention_heads": 4, "vocab_size": 100, "intermediate_size": 128,
                          "layer_types": "full_attention"})"),
              HasSubstr("layer_types: expected an array"));
}

/// --num-layers makes a shallow copy, whose layers are the first of the list, or a deeper one.
TEST(HfLayerTypes, OfAnotherNumberOfLayersThoseInBothAreCompared) {
  const std::string good = config("gpt_oss", "sfsfsf", kGptOss);
  EXPECT_EQ(verdict(good, {{"layers", 3}}), "accepted");
  EXPECT_EQ(verdict(good, {{"layers", 12}}), "accepted");
  EXPECT_THAT(verdict(config("gpt_oss", "ssfsfs", kGptOss), {{"layers", 2}}),
              HasSubstr("layer_types[1]"));
}

TEST(HfLayerTypes, WindowsOfQwensWithExpertsAreRefused) {
  EXPECT_THAT(verdict(R"({"model_type": "qwen3_moe", "use_sliding_window": true})"),
              HasSubstr("use_sliding_window"));
}

}  // namespace
}  // namespace lockstep::hf_layer_types_test
