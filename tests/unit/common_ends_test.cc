// Which ranks are of one group where nothing but their ends tells.
#include "analysis/compare/common_ends.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::compare::common_ends_test {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

constexpr double kUs = 1e-6;

/// Three all-reduces of 50 us each, of so many bytes, that end every millisecond and so late.
EndsOfRank rank(std::int32_t number, double late_us, std::int64_t bytes = 1024) {
  EndsOfRank ends{number, {}};
  for (int k = 1; k <= 3; ++k) {
    ends.ops.push_back({CommType::kAllReduce, bytes, k * 1e-3 + late_us * kUs, 50 * kUs});
  }
  return ends;
}

TEST(CommonEnds, ReplicasBesideEachOtherStayApart) {
  // Pairs end within 1 us of each other, the second pair 8 us after the first: all within 20 us.
  const std::vector<EndsOfRank> ranks = {rank(0, 0), rank(1, 1), rank(2, 8), rank(3, 9)};
  EXPECT_THAT(ranks_that_end_together(ranks, 2),
              UnorderedElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
  // Strided groups, as those of data parallelism.
  const std::vector<EndsOfRank> strided = {rank(0, 0), rank(1, 8), rank(2, 1), rank(3, 9)};
  EXPECT_THAT(ranks_that_end_together(strided, 2),
              UnorderedElementsAre(ElementsAre(0, 2), ElementsAre(1, 3)));
  // Nobody knows how many there are in a group.
  EXPECT_THAT(ranks_that_end_together(ranks, 0), UnorderedElementsAre(ElementsAre(0, 1, 2, 3)));
}

TEST(CommonEnds, WhatEndsAsCloseToOthersIsAlone) {
  const std::vector<EndsOfRank> even = {rank(0, 0), rank(1, 1), rank(2, 2), rank(3, 3)};
  EXPECT_THAT(ranks_that_end_together(even, 2),
              UnorderedElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2), ElementsAre(3)));
  const std::vector<EndsOfRank> same = {rank(0, 0), rank(1, 0), rank(2, 0), rank(3, 0)};
  EXPECT_EQ(ranks_that_end_together(same, 2).size(), 4U);
  EXPECT_EQ(ranks_that_end_together(same, 4).size(), 1U);
}

TEST(CommonEnds, OthersAreNotOfTheGroup) {
  EndsOfRank fewer = rank(1, 0);
  fewer.ops.pop_back();
  EndsOfRank other = rank(1, 0);
  other.ops[1].op = CommType::kAllGather;
  for (const EndsOfRank& second : {fewer, other, rank(1, 0, 2048), rank(1, 30)}) {
    EXPECT_EQ(ranks_that_end_together({rank(0, 0), second}, 2).size(), 2U);
    EXPECT_EQ(ranks_that_end_together({rank(0, 0), second}, 0).size(), 2U);
  }
  EXPECT_EQ(ranks_that_end_together({rank(0, 0), rank(1, 0, -1)}, 2).size(), 1U);
  EXPECT_TRUE(ranks_that_end_together({}, 2).empty());
}

// A file of tens of thousands of processes is none of a training, but takes no hours.
TEST(CommonEnds, ManyRanks) {
  std::vector<EndsOfRank> ranks;
  for (int i = 0; i < 50'000; ++i) {
    ranks.push_back(rank(i, 100.0 * (i / 2) + i % 2));
  }
  EXPECT_EQ(ranks_that_end_together(ranks, 2).size(), 25'000U);
}

}  // namespace
}  // namespace lockstep::compare::common_ends_test
