#include "simulator/replay/stretch.h"

#include <vector>

#include <gtest/gtest.h>

namespace lockstep::stretch_test {
namespace {

ProgramOp compute(std::int64_t us, std::int32_t stream = 0) {
  ProgramOp op;
  op.compute = Time::us(us);
  op.stream = stream;
  return op;
}

ProgramOp all_reduce(std::int32_t family = 0, std::int32_t stream = 1) {
  ProgramOp op;
  op.comm = CommType::kAllReduce;
  op.bytes = Bytes(1024);
  op.family = family;
  op.stream = stream;
  return op;
}

ProgramOp receive() {
  ProgramOp op;
  op.comm = CommType::kSendRecv;
  op.bytes = Bytes(1024);
  op.family = 1;
  op.peer = 1;
  op.stream = 2;
  return op;
}

/// A microbatch: receive; compute, all-reduce, compute, all-reduce, compute. Returns its last one.
std::int32_t add_microbatch(Program& program, std::int32_t before, std::int64_t us) {
  std::vector<std::int32_t> after{program.add(receive(), {})};
  if (before >= 0) {
    after.push_back(before);
  }
  std::int32_t last = program.add(compute(us), after);
  for (int i = 0; i < 2; ++i) {
    last = program.add(all_reduce(), std::vector{last});
    last = program.add(compute(us), std::vector{last});
  }
  return last;
}

RankPrograms work_of(Program program) {
  program.finish();
  RankPrograms work;
  work.programs.push_back(std::move(program));
  work.program_of_rank = {0, 0};
  return work;
}

TEST(Stretches, LieBetweenMessages) {
  Program program(std::vector<StreamOrder>(3, StreamOrder::kProgram));
  std::int32_t last = add_microbatch(program, -1, 5);
  last = add_microbatch(program, last, 5);
  add_microbatch(program, last, 7);
  const RankPrograms work = work_of(std::move(program));
  const Stretches stretches(work);
  ASSERT_EQ(stretches.all().size(), 3U);
  EXPECT_EQ(stretches.all()[0].first, 1);
  EXPECT_EQ(stretches.all()[0].first_collective, 2);
  EXPECT_EQ(stretches.all()[0].last, 5);
  EXPECT_EQ(stretches.all()[0].content, stretches.all()[1].content);
  EXPECT_NE(stretches.all()[0].content, stretches.all()[2].content);
  EXPECT_EQ(stretches.starting(0, 7), &stretches.all()[1]);
  EXPECT_EQ(stretches.starting(0, 8), nullptr);
  // On the compute stream three of nine operations, on the collectives' two of six.
  ASSERT_EQ(stretches.all()[1].streams.size(), 2U);
  EXPECT_EQ(stretches.all()[1].streams[0].begin, 3);
  EXPECT_EQ(stretches.all()[1].streams[0].end, 6);
  EXPECT_EQ(stretches.all()[1].streams[1].begin, 2);
  EXPECT_EQ(stretches.all()[1].streams[1].end, 4);
}

TEST(Stretches, EndWhereOthersWaitForTheMiddle) {
  Program program(std::vector<StreamOrder>(4, StreamOrder::kProgram));
  add_microbatch(program, -1, 5);
  program.add(all_reduce(2, 3), std::vector{3});  // needs what the second computation makes
  const Stretches stretches(work_of(std::move(program)));
  EXPECT_TRUE(stretches.empty());
}

TEST(Stretches, HaveExitsThatNothingInsideWaitsFor) {
  // After each computation of the last microbatch a gradient is reduced (family 2, on stream 3),
  // and all of them before the last operation.
  Program program(std::vector<StreamOrder>(4, StreamOrder::kProgram));
  add_microbatch(program, -1, 5);  // operations 0 to 5
  std::vector<std::int32_t> gradients;
  std::int32_t last = program.add(compute(5), std::vector{5, program.add(receive(), {})});  // 7
  for (int i = 0; i < 2; ++i) {
    gradients.push_back(program.add(all_reduce(2, 3), std::vector{last}));  // 8, 11
    last = program.add(all_reduce(), std::vector{last});                    // 9, 12
    last = program.add(compute(5), std::vector{last});                      // 10, 13
  }
  gradients.push_back(last);
  program.add(compute(1), gradients);  // 14
  const Stretches stretches(work_of(std::move(program)));
  const Stretch* const stretch = stretches.starting(0, 7);
  ASSERT_NE(stretch, nullptr);
  EXPECT_EQ(stretch->last, 13);
  EXPECT_EQ(stretch->exits, (std::vector<std::int32_t>{8, 11}));
  EXPECT_TRUE(stretch->is_exit(11));
  EXPECT_FALSE(stretch->is_exit(12));
  EXPECT_EQ(stretch->family, 0);
  EXPECT_EQ(stretch->streams.size(), 2U);
  EXPECT_NE(stretch->content, stretches.starting(0, 1)->content);
}

TEST(Stretches, DoNotHoldTwoFamilies) {
  Program program(std::vector<StreamOrder>(3, StreamOrder::kProgram));
  std::int32_t last = program.add(compute(1), {});
  for (const std::int32_t family : {0, 2}) {
    last = program.add(all_reduce(family), std::vector{last});
    last = program.add(compute(1), std::vector{last});
  }
  const Stretches stretches(work_of(std::move(program)));
  EXPECT_TRUE(stretches.empty());
}

TEST(Stretches, LeaveOutWhatAStreamCarriesOver) {
  // The collective stream's earlier operation may still run when the computations begin.
  Program program(std::vector<StreamOrder>(3, StreamOrder::kProgram));
  const std::int32_t first = program.add(compute(1), {});
  program.add(all_reduce(), std::vector{first});
  std::int32_t last = program.add(compute(1), std::vector{first});
  for (int i = 0; i < 2; ++i) {
    last = program.add(all_reduce(), std::vector{last});
    last = program.add(compute(1), std::vector{last});
  }
  const Stretches stretches(work_of(std::move(program)));
  for (const Stretch& stretch : stretches.all()) {
    EXPECT_NE(stretch.first, 2);
  }
}

}  // namespace
}  // namespace lockstep::stretch_test
