#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "profiler/statistics.h"

namespace lockstep::profiler_statistics_test {
namespace {

using ::testing::ElementsAre;

TEST(Summary, QuartilesLieBetweenSamples) {
  // Sorted 1 2 3 4: places 0.75, 1.5 and 2.25 of 0 … 3.
  const SampleSummary s = summarise(std::vector<double>{4, 1, 3, 2});
  EXPECT_DOUBLE_EQ(s.low, 1.75);
  EXPECT_DOUBLE_EQ(s.median, 2.5);
  EXPECT_DOUBLE_EQ(s.high, 3.25);
  EXPECT_DOUBLE_EQ(s.spread(), 1.5);
  EXPECT_DOUBLE_EQ(s.mean, 2.5);
  EXPECT_DOUBLE_EQ(s.deviation * s.deviation, 1.25);  // (2.25 + 0.25 + 0.25 + 2.25) / 4
  EXPECT_DOUBLE_EQ(s.least, 1);
  EXPECT_DOUBLE_EQ(s.most, 4);
  EXPECT_TRUE(s.outliers.empty());
}

TEST(Summary, NamesOutliersAndKeepsTheMedian) {
  // Median 10, distances 1 0 1 0 90 0.5 → MAD 0.75; limit 3.5 · 1.4826 · 0.75 = 3.89.
  const SampleSummary s = summarise(std::vector<double>{9, 10, 11, 10, 100, 10.5});
  EXPECT_THAT(s.outliers, ElementsAre(4));
  EXPECT_DOUBLE_EQ(s.median, 10.25);
}

TEST(Summary, TicksOfATimerAreNoOutliers) {
  // MAD 0 counts as a thousandth of the median: 3.5 · 1.4826 · 0.001 = 0.52 %.
  EXPECT_TRUE(summarise(std::vector<double>{1, 1, 1, 1, 1.005}).outliers.empty());
  EXPECT_THAT(summarise(std::vector<double>{1, 1, 1, 1, 1.006}).outliers, ElementsAre(4));
}

TEST(Summary, OneSampleIsItsOwnQuartiles) {
  const SampleSummary s = summarise(std::vector<double>{7});
  EXPECT_EQ(s.low, 7);
  EXPECT_EQ(s.high, 7);
  EXPECT_EQ(s.deviation, 0);
}

TEST(Summary, RefusesWhatIsNoTime) {
  EXPECT_THROW(summarise({}), Error);
  EXPECT_THROW(summarise(std::vector<double>{1, -1}), Error);
  EXPECT_THROW(summarise(std::vector<double>{1, 0.0 / 0.0}), Error);
}

TEST(Aiob, DropsSamplesAboveThreeTimesTheLeast) {
  // 10 and 30 stay, 31 goes.
  const AiobSummary s = aiob_summary(std::vector<double>{31, 10, 30});
  EXPECT_DOUBLE_EQ(s.least, 10);
  EXPECT_DOUBLE_EQ(s.most, 30);
  EXPECT_DOUBLE_EQ(s.mean, 20);
}

}  // namespace
}  // namespace lockstep::profiler_statistics_test
