#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "generator/exact/groups.h"

namespace lockstep::exact_groups_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Group = std::vector<std::int32_t>;

std::string error_of(const RankLayout& layout) {
  try {
    check_layout(layout);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// The example of Megatron's initialize_model_parallel: 16 GPUs, tp 2, pp 4.
TEST(ExactGroups, MegatronsExample) {
  const RankLayout layout{.gpus = 16, .tp = 2, .pp = 4};
  check_layout(layout);
  EXPECT_THAT(groups_of(layout, RankGroup::kTp),
              ElementsAre(Group{0, 1}, Group{2, 3}, Group{4, 5}, Group{6, 7}, Group{8, 9},
                          Group{10, 11}, Group{12, 13}, Group{14, 15}));
  EXPECT_THAT(groups_of(layout, RankGroup::kDp),
              ElementsAre(Group{0, 2}, Group{1, 3}, Group{4, 6}, Group{5, 7}, Group{8, 10},
                          Group{9, 11}, Group{12, 14}, Group{13, 15}));
  EXPECT_THAT(groups_of(layout, RankGroup::kPp),
              ElementsAre(Group{0, 4, 8, 12}, Group{1, 5, 9, 13}, Group{2, 6, 10, 14},
                          Group{3, 7, 11, 15}));
  EXPECT_THAT(embedding_groups(groups_of(layout, RankGroup::kPp)),
              ElementsAre(Group{0, 12}, Group{1, 13}, Group{2, 14}, Group{3, 15}));
}

// tp 2 varies fastest, then pp (stride 2), then dp (stride 4).
TEST(ExactGroups, TpPpDpMapping) {
  const RankLayout layout{.gpus = 8, .tp = 2, .pp = 2, .etp = 2, .order = "tp-cp-ep-pp-dp"};
  check_layout(layout);
  EXPECT_THAT(groups_of(layout, RankGroup::kPp),
              ElementsAre(Group{0, 2}, Group{1, 3}, Group{4, 6}, Group{5, 7}));
  EXPECT_THAT(groups_of(layout, RankGroup::kDp),
              ElementsAre(Group{0, 4}, Group{1, 5}, Group{2, 6}, Group{3, 7}));
  EXPECT_THAT(stage_of_ranks(layout), ElementsAre(0, 0, 1, 1, 0, 0, 1, 1));
}

// Parallel folding: attention on tp 2 x cp 2, experts on ep 4 over the same ranks.
TEST(ExactGroups, ExpertsFoldOverTpAndCp) {
  const RankLayout layout{.gpus = 8, .tp = 2, .cp = 2, .ep = 4};
  check_layout(layout);
  EXPECT_THAT(groups_of(layout, RankGroup::kCp),
              ElementsAre(Group{0, 2}, Group{1, 3}, Group{4, 6}, Group{5, 7}));
  EXPECT_THAT(groups_of(layout, RankGroup::kEp), ElementsAre(Group{0, 1, 2, 3}, Group{4, 5, 6, 7}));
  EXPECT_THAT(groups_of(layout, RankGroup::kExpertDp),
              ElementsAre(Group{0, 4}, Group{1, 5}, Group{2, 6}, Group{3, 7}));
  EXPECT_THAT(groups_of(layout, RankGroup::kDpCp),
              ElementsAre(Group{0, 2, 4, 6}, Group{1, 3, 5, 7}));
}

TEST(ExactGroups, BrokenRulesAreNamed) {
  EXPECT_THAT(error_of({.gpus = 12, .tp = 8}),
              AllOf(HasSubstr("tp x cp x pp = 8 x 1 x 1 does not divide 12 GPUs"),
                    HasSubstr("expected: tp 6 or 12"), HasSubstr("8 or 16 GPUs would do")));
  EXPECT_THAT(error_of({.gpus = 8, .tp = 2, .ep = 3}),
              HasSubstr("expert_tp x ep x pp = 1 x 3 x 1 does not divide 8 GPUs"));
  EXPECT_THAT(error_of({.gpus = 8, .tp = 16}), HasSubstr("or more GPUs"));
  EXPECT_THAT(error_of({.gpus = 0}), HasSubstr("gpus: 0 is out of range"));
  EXPECT_THAT(error_of({.gpus = 8, .tp = -2}), HasSubstr("tp: -2 is out of range"));
  EXPECT_THAT(error_of({.gpus = 1'000'000'000'000'000'000}), HasSubstr("gpus: "));
  EXPECT_THAT(error_of({.gpus = 1 << 24, .tp = 1 << 24, .cp = 1 << 24, .pp = 1 << 24}),
              HasSubstr("does not divide"));
  EXPECT_THAT(error_of({.gpus = 8, .order = "tp-dp-pp"}), HasSubstr("'tp-dp-pp' is no order"));
  EXPECT_THAT(error_of({.gpus = 8, .order = "tp-tp-ep-dp-pp"}), HasSubstr("is no order"));
  EXPECT_THAT(error_of({.gpus = 8, .tp = 2, .pp = 2, .ep = 4, .order = "tp-cp-ep-pp-dp"}),
              HasSubstr("would be different ranks"));
}

}  // namespace
}  // namespace lockstep::exact_groups_test
