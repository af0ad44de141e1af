// The layer lists of AICB's frameworks (generator/layers/*.yaml); that AICB's bytes come of them is
// tested in tests/reference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "generator/layers/aicb_layer_files.h"
#include "generator/layers/aicb_layers.h"

namespace lockstep::generator_layers_test {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> names(const LayerBlock& block) {
  std::vector<std::string> result;
  for (const Module& module : block.modules) {
    result.push_back(module.name);
  }
  return result;
}

TEST(AicbLayers, EveryListIsAModelByItself) {
  EXPECT_EQ(aicb_layer_files().size(), 6U);
  for (const BuiltInFile& file : aicb_layer_files()) {
    SCOPED_TRACE(file.name);
    EXPECT_FALSE(aicb_layers(file.name.substr(0, file.name.size() - 5), {}).blocks.empty());
  }
}

TEST(AicbLayers, MegatronIsDenseOrMoe) {
  const Model dense = aicb_layers("megatron", {{"num_layers", 2}});
  ASSERT_EQ(dense.blocks.size(), 1U);
  EXPECT_EQ(dense.blocks[0].layers, 2);
  EXPECT_THAT(names(dense.blocks[0]),
              ElementsAre("attention_column", "attention_row", "mlp_column", "mlp_row"));
  // 5 heads of 1024 // 5 = 204: AICB drops the remainder.
  const Model odd = aicb_layers("megatron", {{"num_attention_heads", 5}, {"moe_enable", 1}});
  EXPECT_EQ(odd.blocks[0].modules[0].out, 3 * 1020);
  EXPECT_THAT(names(odd.blocks[0]),
              ElementsAre("attention_column", "attention_row", "mlp_moelayer"));
}

TEST(AicbLayers, DeepSeekIsDenseThenMoeWithSharedExperts) {
  const Model model = aicb_layers("deepseek", {{"num_layers", 5}, {"n_dense_layers", 2}});
  ASSERT_EQ(model.blocks.size(), 2U);
  EXPECT_EQ(model.blocks[0].layers, 2);
  EXPECT_EQ(model.blocks[1].layers, 3);
  EXPECT_EQ(names(model.blocks[1]).back(), "mlp_row");
  const Model alone =
      aicb_layers("deepseek", {{"num_layers", 1}, {"n_dense_layers", 0}, {"n_shared_expert", 0}});
  ASSERT_EQ(alone.blocks.size(), 1U);
  EXPECT_EQ(names(alone.blocks[0]).back(), "mlp_moelayer");
}

// As AICB does with fewer layers than stages, or a hidden size too small for SwiGLU's width.
TEST(AicbLayers, MayHaveNoLayersAndEmptyOnes) {
  EXPECT_TRUE(
      aicb_layers("megatron", {{"num_layers", 0}, {"num_attention_heads", 1}}).blocks.empty());
  EXPECT_EQ(aicb_layers("megatron", {{"ffn_hidden_size", 0}}).blocks[0].modules[2].out, 0);
}

// Layer 4 of 4k attends to everything, the others are linear; what is left over is linear.
TEST(AicbLayers, Qwen3NextAttendsInEveryFourthLayer) {
  const Model model = aicb_layers("inference-qwen3-next",
                                  {{"num_hidden_layers", 6}, {"full_attention_interval", 4}});
  ASSERT_EQ(model.blocks.size(), 3U);
  EXPECT_EQ(model.blocks[0].layers, 3);
  EXPECT_EQ(model.blocks[0].modules[1].name, "attention_gdn");
  EXPECT_EQ(model.blocks[1].layers, 1);
  EXPECT_EQ(model.blocks[1].modules[1].name, "attention_layer");
  EXPECT_EQ(model.blocks[2].layers, 2);
  EXPECT_EQ(model.blocks[2].modules[1].name, "attention_gdn");
}

TEST(AicbLayers, SharedExpertsStandAsOftenAsThereAre) {
  const Model model = aicb_layers("inference-deepseek",
                                  {{"num_layers", 1}, {"dense_layer", 0}, {"shared_experts", 3}});
  EXPECT_THAT(names(model.blocks[0]),
              ElementsAre("attention_layer", "shared_experts", "shared_experts", "shared_experts",
                          "moe_route", "moe_expert"));
}

}  // namespace
}  // namespace lockstep::generator_layers_test
