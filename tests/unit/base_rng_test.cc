#include <array>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"

namespace lockstep::base_rng_test {
namespace {

// From a separate implementation of FNV-1a, SplitMix64 and xoshiro256** (Python integers).
TEST(Rng, NumbersArePinned) {
  Rng rng(1, "straggler/rank 7");
  EXPECT_EQ(rng.next(), 16052155286301159463U);
  EXPECT_EQ(rng.next(), 13404339603415850100U);
  EXPECT_EQ(rng.next(), 6161538264017560894U);
  Rng zero(0, "");
  EXPECT_EQ(zero.next(), 2173012722847780656U);
  EXPECT_EQ(zero.next(), 3664482154190621960U);
  EXPECT_EQ(Rng(7, "dice").uniform(), 0x1.6d6b26fa0ae44p-1);
}

TEST(Rng, StreamsAndSeedsDiffer) {
  EXPECT_EQ(Rng(1, "a").next(), Rng(1, "a").next());
  EXPECT_NE(Rng(1, "a").next(), Rng(1, "b").next());
  EXPECT_NE(Rng(1, "a").next(), Rng(2, "a").next());
}

TEST(Rng, BelowIsUniform) {
  // 100,000 throws of a ten-sided die: chi-square with 9 degrees of freedom is below 27.88 with
  // probability 0.999. The seed is fixed, so this holds always or never.
  constexpr int kThrows = 100'000;
  constexpr std::size_t kSides = 10;
  Rng rng(42, "chi-square");
  std::array<int, kSides> count{};
  for (int i = 0; i < kThrows; ++i) {
    ++count[rng.below(kSides)];
  }
  constexpr double kExpected = static_cast<double>(kThrows) / kSides;
  double chi_square = 0;
  for (const int n : count) {
    chi_square += (n - kExpected) * (n - kExpected) / kExpected;
  }
  EXPECT_LT(chi_square, 27.88);
  EXPECT_GT(chi_square, 0.9);  // and not too regular: above with probability 0.9996
}

TEST(Rng, UniformFillsTheUnitInterval) {
  Rng rng(42, "uniform");
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double u = rng.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
  }
  // The mean's standard deviation is sqrt(1/12/100000) = 0.00091.
  EXPECT_NEAR(sum / 100'000, 0.5, 0.004);
}

TEST(Rng, BetweenReachesBothEnds) {
  Rng rng(3, "between");
  bool low = false;
  bool high = false;
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t value = rng.between(-1, 1);
    ASSERT_TRUE(value >= -1 && value <= 1);
    low = low || value == -1;
    high = high || value == 1;
  }
  EXPECT_TRUE(low && high);
  EXPECT_EQ(rng.between(5, 5), 5);
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_NE(rng.between(kMin, kMax), rng.between(kMin, kMax));
  EXPECT_THROW(rng.between(1, 0), InternalError);
  EXPECT_THROW(rng.below(0), InternalError);
}

}  // namespace
}  // namespace lockstep::base_rng_test
