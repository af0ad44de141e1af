#include "simulator/replay/critical_path.h"

#include <numeric>

#include <gtest/gtest.h>

namespace lockstep::critical_path_test {
namespace {

std::vector<std::int32_t> each_its_own(std::size_t ranks) {
  std::vector<std::int32_t> slots(ranks);
  std::iota(slots.begin(), slots.end(), 0);
  return slots;
}

ProgramOp compute(OpType type) {
  ProgramOp op;
  op.type = type;
  return op;
}

ProgramOp reduce() {
  ProgramOp op;
  op.comm = CommType::kAllReduce;
  op.family = 0;
  op.stream = 1;
  op.type = OpType::kReduceGradients;
  return op;
}

// Two ranks compute, all-reduce from the moment the second enters, and compute again. The path is
// the slow rank's first computation (0 … 20), the all-reduce (20 … 25) and the longer of the last
// computations, rank 0's (26 … 33, after a lead of 1).
TEST(CriticalPath, GoesToTheRankThatCameLast) {
  Program program({StreamOrder::kProgram, StreamOrder::kProgram});
  const std::int32_t first = program.add(compute(OpType::kForward), {});
  const std::int32_t comm = program.add(reduce(), {&first, 1});
  program.add(compute(OpType::kOptimizer), {&comm, 1});
  program.finish();
  RankPrograms work;
  work.programs.push_back(std::move(program));
  work.program_of_rank = {0, 0};
  work.families.emplace_back(GroupKind::kDp, std::vector<std::vector<std::int32_t>>{{0, 1}}, 2);
  const auto us = [](int t) { return Time::us(t); };
  const std::vector<std::vector<OpTiming>> timing{
      {{us(0), us(0), us(10)}, {us(10), us(10), us(25)}, {us(25), us(26), us(33)}},
      {{us(0), us(0), us(20)}, {us(20), us(20), us(25)}, {us(25), us(25), us(27)}}};
  const CriticalPath path = critical_path(work, timing, each_its_own(timing.size()));
  EXPECT_EQ(path.total, us(33));
  ASSERT_EQ(path.pieces.size(), 3U);
  EXPECT_EQ(path.pieces[0].rank, 1);
  EXPECT_EQ(path.pieces[0].end, us(20));
  EXPECT_EQ(path.pieces[1].begin, us(20));
  EXPECT_EQ(path.pieces[2].rank, 0);
  EXPECT_EQ(path.gap, us(1));
  EXPECT_EQ(path.compute, us(27));
  EXPECT_EQ(path.comm_by_group[static_cast<std::size_t>(GroupKind::kDp)], us(5));
  EXPECT_EQ(path.by_type[static_cast<std::size_t>(OpType::kForward)], us(20));
  EXPECT_EQ(path.by_rank[1], us(20));
}

// A receiver that was there first waits for its sender: 0 sends from 10 to 14, 1 waits from 0.
TEST(CriticalPath, ReceiversWaitForSenders) {
  Program sender({StreamOrder::kProgram, StreamOrder::kProgram}), receiver = sender;
  ProgramOp message;
  message.comm = CommType::kSendRecv;
  message.stream = 1;
  message.peer = 1;
  message.send = true;
  const std::int32_t first = sender.add(compute(OpType::kForward), {});
  sender.add(message, {&first, 1});
  sender.finish();
  message.peer = 0;
  message.send = false;
  const std::int32_t in = receiver.add(message, {});
  receiver.add(compute(OpType::kForward), {&in, 1});
  receiver.finish();
  RankPrograms work;
  work.programs = {sender, receiver};
  work.program_of_rank = {0, 1};
  const auto us = [](int t) { return Time::us(t); };
  const std::vector<std::vector<OpTiming>> timing{
      {{us(0), us(0), us(10)}, {us(10), us(10), us(13)}},
      {{us(0), us(0), us(14)}, {us(14), us(14), us(20)}}};
  const CriticalPath path = critical_path(work, timing, each_its_own(timing.size()));
  EXPECT_EQ(path.compute, us(16));
  EXPECT_EQ(path.comm_by_group[static_cast<std::size_t>(GroupKind::kPp)], us(4));
  EXPECT_EQ(path.gap, Time());
  EXPECT_EQ(path.pieces.front().rank, 0);
}

}  // namespace
}  // namespace lockstep::critical_path_test
