#include "simulator/replay/session_memo.h"

#include <gtest/gtest.h>

namespace lockstep::session_memo_test {
namespace {

constexpr std::int64_t kA = 1, kB = 2;

TEST(SessionMemo, TellsWhatItWasTold) {
  SessionMemo memo;
  EXPECT_TRUE(memo.node(SessionMemo::kRoot).rests);
  EXPECT_EQ(memo.find(SessionMemo::kRoot, Time(), kA), -1);
  const std::int32_t entered = memo.enter(SessionMemo::kRoot, Time(), kA);
  EXPECT_FALSE(memo.node(entered).known);
  const std::int64_t codes[] = {kA};
  const std::int32_t after = memo.finish(entered, Time::us(5), codes);
  memo.rest(after);

  EXPECT_EQ(memo.find(SessionMemo::kRoot, Time(), kA), entered);
  const SessionMemo::Node node = memo.node(entered);
  EXPECT_TRUE(node.known);
  EXPECT_EQ(node.when, Time::us(5));
  ASSERT_EQ(memo.finishes(node).size(), 1U);
  EXPECT_EQ(memo.finishes(node)[0], kA);
  EXPECT_TRUE(memo.node(node.after).rests);
}

TEST(SessionMemo, AnotherMomentIsAnotherEntry) {
  SessionMemo memo;
  const std::int32_t first = memo.enter(SessionMemo::kRoot, Time(), kA);
  memo.stay_quiet(first, Time::us(2));
  const std::int32_t late = memo.enter(first, Time::us(2), kB);
  EXPECT_EQ(memo.find(first, Time::us(2), kB), late);
  EXPECT_EQ(memo.find(first, Time::us(2) + Time::ps(1), kB), -1);
  EXPECT_EQ(memo.find(first, Time::us(2), kA), -1);
  EXPECT_EQ(memo.node(first).quiet, Time::us(2));
  // Nothing is known of what happens at the moment of an entry, all of what comes before.
  EXPECT_EQ(memo.node(late).quiet, Time::us(2) - Time::ps(1));
}

TEST(SessionMemo, WhatIsKnownStays) {
  SessionMemo memo;
  const std::int32_t entered = memo.enter(SessionMemo::kRoot, Time(), kA);
  const std::int32_t after = memo.finish(entered, Time::us(1), {});
  const std::size_t size = memo.size();
  EXPECT_EQ(memo.finish(entered, Time::us(1), {}), after);
  EXPECT_EQ(memo.enter(SessionMemo::kRoot, Time(), kA), entered);
  EXPECT_EQ(memo.size(), size);
}

}  // namespace
}  // namespace lockstep::session_memo_test
