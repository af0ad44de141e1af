#include "simulator/network/flow/dcqcn_point.h"

#include <cmath>

#include <gtest/gtest.h>

namespace lockstep::dcqcn_point_test {
namespace {

constexpr double kLine = 400e9;
constexpr double kCertain = 1e12;  // marks a second

TEST(DcqcnPoint, KeepsTheLineRateWithoutMarks) {
  DcqcnPoint point(kLine);
  point.advance({}, kLine, Time::us(100'000), 0, 1);
  EXPECT_EQ(point.rate(), kLine);
  EXPECT_TRUE(point.is_idle());
}

// Marked at 10 us: looks come at whole 50 us after that, so R = line (1 - a / 2) at 60 us, with a
// one look's decay below 1; half-way back to the line rate every 55 us.
TEST(DcqcnPoint, CutsAndRecovers) {
  const DcqcnParameters parameters;
  DcqcnPoint point(kLine);
  point.advance(parameters, kLine, Time::us(10), kCertain, 0.5);
  EXPECT_FALSE(point.is_idle());
  EXPECT_EQ(point.rate(), kLine);
  point.advance(parameters, kLine, Time::us(59), 0, 1);
  EXPECT_EQ(point.rate(), kLine);
  point.advance(parameters, kLine, Time::us(60), 0, 1);
  const double alpha = std::pow(1 - 1.0 / 256, 50.0 / 55);
  const double cut = kLine * (1 - alpha / 2);
  EXPECT_NEAR(point.rate(), cut, 1e-6 * kLine);
  point.advance(parameters, kLine, Time::us(114), 0, 1);
  EXPECT_NEAR(point.rate(), cut, 1e-6 * kLine);
  point.advance(parameters, kLine, Time::us(115), 0, 1);
  EXPECT_NEAR(point.rate(), (cut + kLine) / 2, 1e-6 * kLine);
  point.advance(parameters, kLine, Time::us(60 + 55 * 4), 0, 1);
  EXPECT_NEAR(point.rate(), kLine - (kLine - cut) / 16, 1e-6 * kLine);
  point.advance(parameters, kLine, Time::us(60 + 55 * 25), 0, 1);
  EXPECT_EQ(point.rate(), kLine);
  EXPECT_TRUE(point.is_idle());
}

// Marked at every look: half of the rate each time, down to the least.
TEST(DcqcnPoint, NeverFallsBelowTheLeastRate) {
  const DcqcnParameters parameters;
  DcqcnPoint point(kLine);
  for (int us = 5; us < 2000; us += 5) {
    point.advance(parameters, kLine, Time::us(us), kCertain, 0.5);
  }
  EXPECT_EQ(point.rate(), parameters.least);
}

}  // namespace
}  // namespace lockstep::dcqcn_point_test
