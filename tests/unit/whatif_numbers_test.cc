#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/whatif/numbers.h"
#include "base/rng.h"

namespace lockstep::whatif::whatif_numbers_test {
namespace {

using ::testing::ElementsAre;

std::string python(double value) {
  std::string out;
  append_python_float(out, value);
  return out;
}

// Every double comes back, with the fewest digits (those that fmt finds) and where CPython has
// them.
TEST(PythonFloat, GivesEveryDoubleBack) {
  Rng rng(2, "doubles");
  for (int i = 0; i < 20000; ++i) {
    // Numbers of any size, and those around 1 that traces hold.
    const double any = std::bit_cast<double>(rng.next());
    const double value =
        i % 2 == 0 && std::isfinite(any) ? any : static_cast<double>(rng.next() >> 20) / 1e6;
    const std::string text = python(value);
    EXPECT_EQ(std::strtod(text.c_str(), nullptr), value) << text;
    std::string shortest = fmt::format("{}", value);
    if (shortest.find_first_of(".e") == std::string::npos) {
      shortest += ".0";
    }
    EXPECT_EQ(text, shortest);
  }
  EXPECT_EQ(python(-0.0), "-0.0");
  EXPECT_EQ(python(0.001234), "0.001234");
  EXPECT_EQ(python(9007199254740993.0), "9007199254740992.0");
  EXPECT_EQ(python(5e-324), "5e-324");
}

// The middle values are those of the sorted numbers, whatever their order and however many are
// alike (0 alone; few values; all different; sorted either way).
TEST(Median, IsTheMiddleOfTheSorted) {
  Rng rng(3, "medians");
  for (const std::uint64_t kinds : {1U, 2U, 5U, 1U << 30}) {
    for (const std::size_t size : {1U, 2U, 3U, 24U, 25U, 26U, 100U, 1001U, 20000U}) {
      for (const int order : {0, 1, -1}) {
        std::vector<float> values(size);
        for (float& value : values) {
          value = static_cast<float>(rng.next() % kinds) - 2;
        }
        std::vector<float> sorted = values;
        std::sort(sorted.begin(), sorted.end());
        if (order > 0) {
          values = sorted;
        } else if (order < 0) {
          values.assign(sorted.rbegin(), sorted.rend());
        }
        const float upper = sorted[size / 2], lower = sorted[(size - 1) / 2];
        std::vector<float> copy = values;
        EXPECT_EQ(upper_median(copy), upper);
        std::sort(copy.begin(), copy.end());
        EXPECT_EQ(copy, sorted);  // none is lost
        copy = values;
        EXPECT_EQ(median(std::span<float>(copy)),
                  (static_cast<double>(lower) + static_cast<double>(upper)) / 2);
        std::vector<double> wide(values.begin(), values.end());
        EXPECT_EQ(median(std::span<double>(wide)),
                  (static_cast<double>(lower) + static_cast<double>(upper)) / 2);
      }
    }
  }
}

TEST(PythonFloat, IsCPythonsRepr) {
  EXPECT_EQ(python(1), "1.0");
  EXPECT_EQ(python(0), "0.0");
  EXPECT_EQ(python(-2.5), "-2.5");
  EXPECT_EQ(python(0.1), "0.1");
  EXPECT_EQ(python(1e-4), "0.0001");
  EXPECT_EQ(python(1e-5), "1e-05");
  EXPECT_EQ(python(1e15), "1000000000000000.0");
  EXPECT_EQ(python(1e16), "1e+16");
  EXPECT_EQ(python(1.2345e-7), "1.2345e-07");
  EXPECT_EQ(python(1e100), "1e+100");
  EXPECT_EQ(python(static_cast<double>(46.670094F)), "46.67009353637695");
}

/// With eight sums side by side the order shows: 1 + eps/2 twice in a row is 1, but the two halves
/// added first are eps.
TEST(PairwiseMean, AddsInNumpysOrder) {
  const double half = std::numeric_limits<double>::epsilon() / 2;
  std::vector<double> few = {1, half, half};
  EXPECT_EQ(pairwise_mean(few), 1.0 / 3);  // fewer than 8: one by one
  std::vector<double> many(16, 0.0);
  many[0] = 1;
  many[1] = half;
  many[9] = half;  // the same of the eight sums: eps, then added to 1
  EXPECT_EQ(pairwise_mean(many), (1 + 2 * half) / 16);
  std::vector<double> long_one(1000);
  std::iota(long_one.begin(), long_one.end(), 1.0);
  EXPECT_EQ(pairwise_mean(long_one), 500.5);
  const std::vector<float> floats(300, 0.1F);
  EXPECT_NEAR(pairwise_mean(floats), 0.1F, 2e-8F);
}

TEST(KahanSum, KeepsWhatPlainSumsLose) {
  KahanSum sum;
  sum.add(1);
  for (int i = 0; i < 1000; ++i) {
    sum.add(1e-17);
  }
  EXPECT_EQ(sum.mean() * 1001, 1 + 1e-14);
}

TEST(Median, MiddleOrMeanOfTheTwo) {
  std::vector<float> odd = {5, 1, 3};
  EXPECT_EQ(median(std::span<float>(odd)), 3);
  std::vector<float> even = {4, 1, 3, 2};
  EXPECT_EQ(median(std::span<float>(even)), 2.5);
}

/// CPython 3.11: list(s) after s.add of each.
TEST(PythonSetOrder, IsCPythons) {
  const std::vector<std::int64_t> steps = {23, 25, 33, 34, 36};
  EXPECT_THAT(python_set_order(steps), ElementsAre(33, 34, 36, 23, 25));
  const std::vector<std::int64_t> small = {3, 1, 2, 1};
  EXPECT_THAT(python_set_order(small), ElementsAre(1, 2, 3));
  const std::vector<std::int64_t> ranks = {0, 4, 8, 12, 16, 20, 24, 28, 32, 36};
  EXPECT_THAT(python_set_order(ranks), ElementsAre(0, 32, 4, 36, 8, 12, 16, 20, 24, 28));
}

/// The order holds every value once, whatever the values.
TEST(PythonSetOrder, IsAPermutation) {
  Rng rng(7, "set order");
  for (int round = 0; round < 200; ++round) {
    std::vector<std::int64_t> values;
    for (std::uint64_t n = rng.below(300); n > 0; --n) {
      values.push_back(rng.between(0, 2000));
    }
    std::vector<std::int64_t> order = python_set_order(values);
    std::sort(order.begin(), order.end());
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    ASSERT_EQ(order, values);
  }
}

}  // namespace
}  // namespace lockstep::whatif::whatif_numbers_test
