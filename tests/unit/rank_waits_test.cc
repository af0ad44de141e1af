// What operations of a rank wait for: one byte each, and a list for those that wait for many.
#include <vector>

#include <gtest/gtest.h>

#include "simulator/replay/replay_rank.h"

namespace lockstep::rank_waits_test {
namespace {

TEST(RankWaits, CountManyPredecessorsOneByOne) {
  RankWaits waits(std::vector<std::int32_t>{0, 1000, 255, 254, 1}, 10);
  EXPECT_EQ(waits[9], 0);   // it is over
  EXPECT_EQ(waits[15], 1);  // it does not come
  for (std::int32_t left = 999; left >= 0; --left) {
    EXPECT_EQ(waits.end_one(11), left);
    EXPECT_EQ(waits[11], left);
  }
  EXPECT_EQ(waits[12], 255);
  EXPECT_EQ(waits.end_one(12), 254);
  EXPECT_EQ(waits.end_one(13), 253);
  EXPECT_EQ(waits.end_one(14), 0);
}

TEST(RankWaits, TakeClearMoveAndTrim) {
  RankWaits waits(std::vector<std::int32_t>{0, 300, 2, 400, 5, 6});
  RankWaits other(std::vector<std::int32_t>{7, 500}, 1);
  waits.take(1, 2, other);
  EXPECT_EQ(waits[1], 7);
  EXPECT_EQ(waits[2], 500);
  waits.clear(1, 1);
  EXPECT_EQ(waits[1], 0);
  waits.move(2, 4, 2);  // 500 and 400 go from 2 and 3 to 4 and 5
  EXPECT_EQ(waits[2], 0);
  EXPECT_EQ(waits[3], 0);
  EXPECT_EQ(waits[4], 500);
  EXPECT_EQ(waits[5], 400);
  waits.trim();
  EXPECT_EQ(waits[1], 0);
  EXPECT_EQ(waits.end_one(5), 399);
  EXPECT_EQ(waits[6], 1);
}

// What a stretch begins with may have been ready, and so trimmed, long before the stretch begins.
TEST(RankWaits, WhatIsTrimmedMayBeTakenAndCleared) {
  RankWaits waits(std::vector<std::int32_t>{0, 0, 2, 1, 3}, 4);
  waits.trim();
  RankWaits stretch(std::vector<std::int32_t>{0, 1, 1}, 5);
  waits.take(5, 7, stretch);
  EXPECT_EQ(waits[5], 0);
  EXPECT_EQ(waits[6], 1);
  EXPECT_EQ(waits[7], 1);
  EXPECT_EQ(waits[8], 3);
  waits.clear(4, 6);
  EXPECT_EQ(waits[6], 0);
  EXPECT_EQ(waits[7], 1);
  waits.clear(4, 5);
  EXPECT_EQ(waits[7], 1);
}

}  // namespace
}  // namespace lockstep::rank_waits_test
