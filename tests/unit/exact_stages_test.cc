#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "generator/exact/stages.h"

namespace lockstep::exact_stages_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::int64_t> counts(const StageCut& cut) {
  std::vector<std::int64_t> layers;
  for (const std::vector<ModelChunk>& stage : cut_into_stages(cut)) {
    std::int64_t sum = 0;
    for (const ModelChunk& chunk : stage) {
      sum += chunk.layers;
    }
    layers.push_back(sum);
  }
  return layers;
}

std::string error_of(const StageCut& cut) {
  try {
    cut_into_stages(cut);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// SC'21, section 2.2: 16 layers on 4 devices with 2 chunks: device 1 has layers 1, 2, 9, 10.
TEST(ExactStages, InterleavedChunksAsInThePaper) {
  const auto stages = cut_into_stages({.layers = 16, .pp = 4, .vpp = 2});
  ASSERT_EQ(stages.size(), 4U);
  EXPECT_THAT(stages[0],
              ElementsAre(ModelChunk{0, 2, true, false}, ModelChunk{8, 2, false, false}));
  EXPECT_THAT(stages[3],
              ElementsAre(ModelChunk{6, 2, false, false}, ModelChunk{14, 2, false, true}));
}

// Llama 3 405B: 126 layers on 16 stages, one layer fewer on the first and on the last.
TEST(ExactStages, RemainderSparesFirstAndLast) {
  EXPECT_THAT(counts({.layers = 126, .pp = 16}),
              ElementsAre(7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7));
  EXPECT_THAT(counts({.layers = 10, .pp = 4}), ElementsAre(2, 3, 3, 2));
  EXPECT_THAT(counts({.layers = 9, .pp = 4}), ElementsAre(2, 2, 3, 2));
  EXPECT_THAT(counts({.layers = 11, .pp = 4}), ElementsAre(3, 3, 3, 2));
  EXPECT_THAT(counts({.layers = 3, .pp = 2}), ElementsAre(2, 1));
}

// DeepSeek-V3 in Megatron: 61 layers, pp 16, 4 of them on the first stage, 1 on the last.
TEST(ExactStages, GivenCountsAsMegatronHasThem) {
  EXPECT_THAT(counts({.layers = 61, .pp = 16, .first_layers = 4, .last_layers = 1}),
              ElementsAre(4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 1));
  EXPECT_THAT(counts({.layers = 14, .pp = 2, .vpp = 2, .first_layers = 6}), ElementsAre(6, 8));
}

TEST(ExactStages, CountsOfEveryVirtualStageAreTakenAsTheyAre) {
  EXPECT_THAT(counts({.layers = 10, .pp = 3, .counts = {2, 5, 3}}), ElementsAre(2, 5, 3));
  // Virtual stages 0 1 2 3 on two stages: 1 + 3 and 2 + 4 layers.
  EXPECT_THAT(counts({.layers = 10, .pp = 2, .vpp = 2, .counts = {1, 2, 3, 4}}), ElementsAre(4, 6));
  EXPECT_THAT(error_of({.layers = 10, .pp = 3, .counts = {2, 5}}), HasSubstr("3 counts"));
  EXPECT_THAT(error_of({.layers = 10, .pp = 3, .counts = {2, 5, 4}}), HasSubstr("11 layers"));
  // The embedding and the head may stand alone.
  EXPECT_THAT(counts({.layers = 2, .pp = 4, .counts = {0, 1, 1, 0}}), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(error_of({.layers = 10, .pp = 3, .counts = {5, 0, 5}}), HasSubstr("out of range"));
  EXPECT_THAT(error_of({.layers = 10, .pp = 3, .counts = {-1, 5, 6}}), HasSubstr("out of range"));
  EXPECT_THAT(error_of({.layers = 10, .pp = 3, .first_layers = 2, .counts = {2, 5, 3}}),
              HasSubstr("once more"));
}

TEST(ExactStages, BrokenRulesAreNamed) {
  EXPECT_THAT(error_of({.layers = 4, .pp = 8}), HasSubstr("pp: 4 layers cannot be cut"));
  EXPECT_THAT(error_of({.layers = 8, .pp = 4, .vpp = 3}), HasSubstr("at most 2 chunks"));
  EXPECT_THAT(error_of({.layers = 0}), HasSubstr("layers: 0 is out of range"));
  EXPECT_THAT(error_of({.layers = 61, .pp = 16, .first_layers = 3}),
              AllOf(HasSubstr("58 layers are left for 15 stages"), HasSubstr("45 or 60")));
  EXPECT_THAT(error_of({.layers = 12, .pp = 2, .vpp = 2, .first_layers = 3, .last_layers = 9}),
              HasSubstr("3 layers of a stage do not divide into 2 chunks"));
  EXPECT_THAT(error_of({.layers = 12, .pp = 1, .first_layers = 6, .last_layers = 6}),
              HasSubstr("the counts given"));
  EXPECT_THAT(error_of({.layers = 12, .pp = 1'000'000'000'000, .vpp = 1'000'000'000'000}),
              HasSubstr("pp: "));
}

}  // namespace
}  // namespace lockstep::exact_stages_test
