#include <cmath>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "generator/model/parameters.h"
#include "generator/model/zoo.h"

namespace lockstep::model_zoo_test {
namespace {

using ::testing::HasSubstr;

std::string failure(std::string_view name, const Variables& given = {}) {
  try {
    find_model(name, given);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// Half a percent, as the rounding of "125M" allows (what is published in millions); where the
/// released weights were counted, to the last parameter.
TEST(ModelZoo, ParametersAreThoseThatArePublished) {
  const std::vector<ZooEntry> entries = list_models();
  EXPECT_GE(entries.size(), 30U);
  for (const ZooEntry& entry : entries) {
    const ParameterTotals counted = model_parameters(find_model(entry.name));
    EXPECT_NEAR(counted.total / entry.published_parameters, 1, 0.005) << entry.name;
    const bool rounded = std::fmod(entry.published_parameters, 1e6) == 0;
    if (!rounded) {
      EXPECT_EQ(counted.total, entry.published_parameters) << entry.name;
    }
    EXPECT_FALSE(entry.source.empty()) << entry.name;
  }
}

/// The models that others are measured by rest on totals that were seen.
TEST(ModelZoo, TheMainModelsAreConfirmed) {
  std::map<std::string, bool> confirmed;
  for (const ZooEntry& entry : list_models()) {
    confirmed[entry.name] = entry.unconfirmed.empty();
  }
  for (const char* name :
       {"gpt3-175b", "llama2-7b", "llama2-13b", "llama2-70b", "llama3-8b", "llama3-70b",
        "llama3.1-405b", "mixtral-8x7b", "mixtral-8x22b", "deepseek-v3", "qwen3-8b", "qwen3-32b",
        "qwen3-30b-a3b", "qwen3-235b-a22b"}) {
    EXPECT_TRUE(confirmed.at(name)) << name;
  }
}

/// "22B" is rounded to 2.3 %.
TEST(ModelZoo, ActiveParametersAreThoseThatArePublished) {
  int seen = 0;
  for (const ZooEntry& entry : list_models()) {
    if (entry.published_active_parameters > 0) {
      const ParameterTotals counted = model_parameters(find_model(entry.name));
      EXPECT_NEAR(counted.active / entry.published_active_parameters, 1, 0.025) << entry.name;
      ++seen;
    }
  }
  EXPECT_GE(seen, 5);
}

TEST(ModelZoo, Llama3To8BillionExactly) {
  // 2 * 128256 * 4096 + 4096 outside, a layer: 2 norms, qkv 4096 (32 + 16) 128, out 4096^2,
  // 3 * 4096 * 14336.
  const double layer = 2 * 4096 + 4096. * 6144 + 4096. * 4096 + 3 * 4096. * 14336;
  const double whole = 2 * 128256. * 4096 + 4096 + 32 * layer;
  EXPECT_EQ(model_parameters(find_model("llama3-8b")).total, whole);
  EXPECT_EQ(whole, 8'030'261'248);
}

TEST(ModelZoo, VariablesMayBeReplaced) {
  const Model shallow = find_model("llama3-8b", {{"layers", 2}});
  EXPECT_EQ(shallow.blocks.at(0).layers, 2);
  EXPECT_EQ(shallow.published_parameters, 0);
  EXPECT_EQ(find_model("Llama3.1-8B").blocks.at(0).layers, 32);
  EXPECT_EQ(find_model("llama").blocks.at(0).layers, 32);
}

TEST(ModelZoo, DeepSeekHasDenseLayersThenExperts) {
  const Model model = find_model("deepseek-r1");
  ASSERT_EQ(model.blocks.size(), 2U);
  EXPECT_EQ(model.blocks[0].layers, 3);
  EXPECT_EQ(model.blocks[1].layers, 58);
  EXPECT_EQ(model.blocks[1].modules.back().experts, 256);
}

TEST(ModelZoo, Gemma3SeesEverythingEverySixthLayer) {
  const Model model = find_model("gemma3-27b");  // 62 = 10 (5 + 1) + 2
  ASSERT_EQ(model.blocks.size(), 21U);
  EXPECT_EQ(model.blocks[0].layers, 5);
  EXPECT_EQ(model.blocks[1].layers, 1);
  EXPECT_EQ(model.blocks[20].layers, 2);
  const auto window = [&](std::size_t block) {
    for (const Module& module : model.blocks[block].modules) {
      if (module.kind == ModuleKind::kAttention) {
        return module.window;
      }
    }
    return std::int64_t{-1};
  };
  EXPECT_EQ(window(0), 1024);
  EXPECT_EQ(window(1), 0);
}

TEST(ModelZoo, NamesAliasesAndArchitecturesAreKnown) {
  EXPECT_TRUE(has_model("Mixtral-8x7B"));
  EXPECT_TRUE(has_model("vit"));
  EXPECT_FALSE(has_model("gpt-7b"));
}

TEST(ModelZoo, EveryArchitectureIsAModelByItself) {
  EXPECT_GE(list_architectures().size(), 9U);
  for (const std::string_view name : list_architectures()) {
    EXPECT_GT(model_parameters(find_model(name)).total, 1e6) << name;
  }
}

TEST(ModelZoo, ErrorsHelp) {
  EXPECT_THAT(failure("lama3-8b"), HasSubstr("did you mean llama3-8b?"));
  EXPECT_THAT(failure("llama3"), HasSubstr("did you mean llama3-8b, llama3.1-8b, llama3-70b"));
  EXPECT_THAT(failure("meta-llama/Llama-3.1-8B"), HasSubstr("did you mean llama3.1-8b?"));
  EXPECT_THAT(failure("deepseek v3"), HasSubstr("did you mean deepseek-v3?"));
  EXPECT_THAT(failure("nothing like it"), HasSubstr("--list-models"));
  EXPECT_THAT(failure("mine.yaml"), HasSubstr("--model-file F reads a model file"));
  EXPECT_THAT(known_model_hint("Qwen/Qwen3-8B"), HasSubstr("--model qwen3-8b"));
  EXPECT_THAT(known_model_hint("mine.yaml"), HasSubstr("check the path"));
  EXPECT_THAT(failure("llama3-8b", {{"layer", 2}}), HasSubstr("did you mean layers?"));
  EXPECT_THAT(failure("llama3-8b", {{"kv_heads", 5}}), HasSubstr("kv_heads"));
}

}  // namespace
}  // namespace lockstep::model_zoo_test
