#include <gtest/gtest.h>

#include "base/student_t.h"

namespace lockstep::base_student_t_test {
namespace {

// The tables' t at 0.975, for n - 1 degrees of freedom.
TEST(StudentT, IsThatOfTheTables) {
  EXPECT_NEAR(student_t_95(2), 12.706, 5e-4);
  EXPECT_NEAR(student_t_95(3), 4.303, 5e-4);
  EXPECT_NEAR(student_t_95(5), 2.776, 5e-4);
  EXPECT_NEAR(student_t_95(10), 2.262, 5e-4);
  EXPECT_NEAR(student_t_95(20), 2.093, 5e-4);
  EXPECT_NEAR(student_t_95(30), 2.045, 5e-4);
  EXPECT_NEAR(student_t_95(1'000'001), 1.960, 5e-4);
  EXPECT_EQ(student_t_95(1), 0);
}

}  // namespace
}  // namespace lockstep::base_student_t_test
