// Two runs of a step side by side.
#include "analysis/compare/steps.h"

#include <gtest/gtest.h>

namespace lockstep::compare::steps_test {
namespace {

/// Rank 0 computes 1 s and reaches the all-reduce at 1 s, rank 1 `late`; both leave 0.5 s after.
std::vector<PhysicalLog> run(double late) {
  PhysicalLog log;
  log.names = {"gemm", "allreduce"};
  for (const std::int32_t rank : {0, 1}) {
    const double compute = rank == 0 ? 1 : late;
    log.ops.push_back({.rank = rank, .name = 0, .begin_s = 0, .duration_s = compute});
    log.ops.push_back({.rank = rank,
                       .kind = OpKind::kCommunication,
                       .name = 1,
                       .begin_s = compute,
                       .duration_s = late + 0.5 - compute});
  }
  return {log};
}

TEST(Steps, TheDifferenceIsSplit) {
  const StepComparison c = compare_steps(run(1), run(2));
  EXPECT_EQ(c.aligned, 4U);
  EXPECT_EQ(c.left, 0U);
  EXPECT_DOUBLE_EQ(c.first.compute_s, 1);
  EXPECT_DOUBLE_EQ(c.second.compute_s, 1.5);  // (1 + 2) / 2
  EXPECT_DOUBLE_EQ(c.first.wait_s, 0);
  EXPECT_DOUBLE_EQ(c.second.wait_s, 0.5);  // rank 0 for one second
  EXPECT_DOUBLE_EQ(c.first.transfer_s, 0.5);
  EXPECT_DOUBLE_EQ(c.second.transfer_s, 0.5);
}

}  // namespace
}  // namespace lockstep::compare::steps_test
