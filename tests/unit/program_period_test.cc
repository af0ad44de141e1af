#include "simulator/replay/program_period.h"

#include <vector>

#include <gtest/gtest.h>

namespace lockstep::program_period_test {
namespace {

ProgramOp compute(std::int64_t us) {
  ProgramOp op;
  op.compute = Time::us(us);
  return op;
}

/// What its microbatches take: three operations each, of which the first waits for the last of the
/// one before.
RankPrograms work_of(const std::vector<std::int64_t>& us) {
  Program program({StreamOrder::kProgram});
  std::vector<std::int32_t> before;
  for (const std::int64_t each : us) {
    std::int32_t last = program.add(compute(each), before);
    last = program.add(compute(1), std::vector{last});
    before = {program.add(compute(2), std::vector{last})};
  }
  program.finish();
  RankPrograms work;
  work.programs.push_back(std::move(program));
  work.program_of_rank = {0};
  return work;
}

TEST(ProgramPeriod, IsThatOfTheMiddle) {
  std::vector<std::int64_t> us(40, 5);
  us[0] = us[1] = 7;
  us[39] = 8;
  const ProgramPeriod period = period_of(work_of(us), 0, nullptr);
  EXPECT_EQ(period.length, 3);
  // From the last two operations of the second microbatch on; that before the last waits for
  // nobody else, but the one that comes after its last operation is another one.
  EXPECT_EQ(period.begin, 4);
  EXPECT_EQ(period.end, 39 * 3);
  EXPECT_EQ(period.reach, 1);
}

TEST(ProgramPeriod, MayBeOfSeveralMicrobatches) {
  std::vector<std::int64_t> us(40, 5);
  for (std::size_t i = 0; i < us.size(); i += 2) {
    us[i] = 6;
  }
  EXPECT_EQ(period_of(work_of(us), 0, nullptr).length, 6);
}

TEST(ProgramPeriod, EndsWhereSomethingIsDifferent) {
  std::vector<std::int64_t> us(60, 5);
  us[45] = 6;
  const ProgramPeriod period = period_of(work_of(us), 0, nullptr);
  EXPECT_EQ(period.begin, 1);  // the very first waits for nothing
  EXPECT_EQ(period.end, 45 * 3);
}

TEST(ProgramPeriod, IsNotThereWhereNothingRepeats) {
  std::vector<std::int64_t> us;
  for (int i = 0; i < 40; ++i) {
    us.push_back(10 + i * i);
  }
  EXPECT_EQ(period_of(work_of(us), 0, nullptr).length, 0);
}

}  // namespace
}  // namespace lockstep::program_period_test
