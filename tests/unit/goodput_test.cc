// Long runs whose every second can be counted by hand, and the closed forms they must meet.
#include "analysis/goodput/goodput.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/support/sanitized.h"

namespace lockstep::goodput_test {
namespace {

// C = 50, M = 10000: Young sqrt(2 50 10000) = 1000; Daly 1000 (1 + 0.05 / 3 + 0.005 / 18 ...) - 50.
TEST(CheckpointInterval, YoungAndDalyByHand) {
  const CheckpointCosts costs{10'000, 50, 0};
  EXPECT_DOUBLE_EQ(young_interval_s(costs), 1000);
  EXPECT_NEAR(daly_interval_s(costs), 1000 * (1 + 0.05 / 3 + 0.005 / 18) - 50, 1e-9);
  EXPECT_DOUBLE_EQ(daly_interval_s({10, 20, 0}), 10);
}

// The exact one lies where no interval beside it is better, and Daly's is near it.
TEST(CheckpointInterval, ExactIsTheBest) {
  for (const double c : {0.001, 1.0, 50.0, 3000.0, 40'000.0}) {
    const CheckpointCosts costs{10'000, c, 300};
    const double best = exact_interval_s(costs);
    const auto cost = [&](double t) { return expected_segment_s(costs, t) / t; };
    EXPECT_LE(cost(best), cost(best * 1.01)) << c;
    EXPECT_LE(cost(best), cost(best * 0.99)) << c;
    EXPECT_NEAR(1 - best / 10'000, std::exp(-(best + c) / 10'000), 1e-12) << c;
    if (c <= 50) {
      EXPECT_NEAR(best / daly_interval_s(costs), 1, 0.001) << c;
    }
  }
  EXPECT_EQ(exact_interval_s({10'000, 0, 0}), 0);
}

LongRun run_of(double step_s, double horizon_s) {
  LongRun run;
  run.steps_s = {step_s};
  run.horizon_s = horizon_s;
  run.mtbf_s = 1e300;
  return run;
}

double total(const RunTime& t) {
  return t.useful_s + t.lost_s + t.checkpoint_s + t.restart_s + t.waiting_s;
}

// No failures: 10 s of work, 2 s of checkpoint; 120 s hold ten of both.
TEST(Goodput, CheckpointsAloneCostTheirTime) {
  LongRun run = run_of(1, 120);
  run.interval = 10;
  run.checkpoint_s = 2;
  const RunTime t = play(run, 1, 0);
  EXPECT_EQ(t.steps, 100);
  EXPECT_DOUBLE_EQ(t.useful_s, 100);
  EXPECT_DOUBLE_EQ(t.checkpoint_s, 20);
  EXPECT_EQ(t.failures, 0);
  EXPECT_DOUBLE_EQ(total(t), 120);
}

// A step that the end cuts off is no step.
TEST(Goodput, TheEndCutsAStepOff) {
  const RunTime t = play(run_of(7, 20), 1, 0);
  EXPECT_EQ(t.steps, 2);
  EXPECT_DOUBLE_EQ(t.useful_s, 14);
  EXPECT_DOUBLE_EQ(t.lost_s, 6);
}

// Weibull of a huge shape: a failure every 25 s. 0-10 work, -11 checkpoint, -21, -22, three seconds
// lost at 25, restart until 30; -40, -41, nine lost at 50, restart until 55; the same until 80;
// -90, -91, and four seconds in hand at 95.
TEST(Goodput, FailuresLikeClockwork) {
  LongRun run = run_of(1, 95);
  run.interval = 10;
  run.checkpoint_s = 1;
  run.restart_s = 5;
  run.mtbf_s = 25;
  run.shape = 1e9;
  const RunTime t = play(run, 7, 0);
  EXPECT_EQ(t.failures, 3);
  EXPECT_NEAR(t.restart_s, 15, 1e-5);
  EXPECT_NEAR(t.checkpoint_s, 5, 1e-5);
  EXPECT_NEAR(t.lost_s, 3 + 9 + 9, 1.001);  // a step may be cut short by a hair's breadth
  EXPECT_NEAR(t.useful_s, 20 + 10 + 10 + 14, 1.001);
  EXPECT_NEAR(total(t), 95, 1e-9);
}

// The same with a checkpoint that is safe only 5 s after it was taken: the one of 22 is lost at 25.
TEST(Goodput, ACheckpointThatIsNotSafeIsLost) {
  LongRun run = run_of(1, 30);
  run.interval = 10;
  run.checkpoint_s = 1;
  run.drain_s = 5;
  run.restart_s = 5;
  run.mtbf_s = 25;
  run.shape = 1e9;
  const RunTime t = play(run, 7, 0);
  EXPECT_EQ(t.failures, 1);
  EXPECT_NEAR(t.useful_s, 10, 1e-5);
  EXPECT_NEAR(t.lost_s, 13, 1e-5);
}

// A checkpoint is safe 25 s after it was taken, the next is due after 10 and waits. 0-10 work, -11,
// safe at 36; -36 work, -37, lost at 45 with the eight seconds after it; restart until 50. -60,
// -61, safe at 86; -86, -87, and 2 + 25 seconds in hand at 89.
TEST(Goodput, ACheckpointBeginsOnlyWhenTheLastIsSafe) {
  LongRun run = run_of(1, 89);
  run.interval = 10;
  run.checkpoint_s = 1;
  run.drain_s = 25;
  run.restart_s = 5;
  run.mtbf_s = 45;
  run.shape = 1e9;
  const RunTime t = play(run, 7, 0);
  EXPECT_EQ(t.failures, 1);
  EXPECT_NEAR(t.checkpoint_s, 4, 1e-5);
  EXPECT_NEAR(t.lost_s, 25 + 8, 1e-5);
  EXPECT_NEAR(t.useful_s, 10 + 10 + 25 + 2, 1e-5);
}

// No spare: the job waits the 40 s of the repair after the second failure, the first took the
// spare.
TEST(Goodput, WithoutASpareTheJobWaitsForTheRepair) {
  LongRun run = run_of(1, 200);
  run.interval = 1;
  run.mtbf_s = 50;
  run.shape = 1e9;
  run.spares = 1;
  run.repair_s = 70;
  // Fails at 50 (back at 120), at 100: waits until 120; from there at 170: one came back at 170.
  const RunTime t = play(run, 3, 0);
  EXPECT_EQ(t.failures, 3);
  EXPECT_NEAR(t.waiting_s, 20, 1e-4);
  EXPECT_NEAR(total(t), 200, 1e-9);
  run.spares = -1;
  EXPECT_EQ(play(run, 3, 0).waiting_s, 0);
}

// Many exponential failures meet Daly's expectation.
TEST(Goodput, MeetsTheExpectedTime) {
  LongRun run = run_of(1, 2e6);
  run.interval = 100;
  run.checkpoint_s = 5;
  run.restart_s = 30;
  run.mtbf_s = 1000;
  const LongRunResult result = play_many(run, 11, 40, 2);
  const double expected = 100 / expected_segment_s({1000, 5, 30}, 100);
  // A failure within a step loses what the formula's continuous work loses too.
  EXPECT_NEAR(result.goodput.mean, expected, 3 * result.goodput.half_width);
  EXPECT_LT(result.goodput.half_width, 0.002);
}

// Step times that are no binary fractions, over a long time: a step that ends as it should counts.
TEST(Goodput, RoundingLosesNoSteps) {
  LongRun run = run_of(0.7, 3e6);
  run.interval = 100;
  run.checkpoint_s = 0.3;
  run.restart_s = 30.1;
  run.mtbf_s = 1000;
  const LongRunResult result = play_many(run, 3, testing::cases_of(40), 2);
  const double expected = 70 / expected_segment_s({1000, 0.3, 30.1}, 70);
  EXPECT_NEAR(result.goodput.mean, expected, 3 * result.goodput.half_width);
}

TEST(Goodput, ThreadsChangeNothingAndSeedsDo) {
  LongRun run = run_of(2, 1e5);
  run.mtbf_s = 3000;
  run.restart_s = 60;
  run.interval = 20;
  run.tokens_per_step = 1e6;
  const LongRunResult one = play_many(run, 5, 20, 1), many = play_many(run, 5, 20, 4);
  EXPECT_EQ(one.goodput.mean, many.goodput.mean);
  EXPECT_EQ(one.tokens_per_day.half_width, many.tokens_per_day.half_width);
  EXPECT_NE(one.goodput.mean, play_many(run, 6, 20, 1).goodput.mean);
  EXPECT_NEAR(one.tokens_per_day.mean, one.steps.mean * 1e6 / (1e5 / 86400), 1);
}

// Nothing fails and nothing is saved: the mean of equal runs is theirs, to the last bit.
TEST(Goodput, IsNotAboveOne) {
  const LongRun run = run_of(5, 5);
  for (const std::int64_t runs : {1, 3, 7, 200, 999}) {
    EXPECT_EQ(play_many(run, 1, runs, 1).goodput.mean, 1) << runs;
  }
}

// Steps that are drawn: half of one second, half of three.
TEST(Goodput, StepsAreDrawn) {
  LongRun run = run_of(1, 1e5);
  run.steps_s = {1, 3};
  EXPECT_NEAR(static_cast<double>(play(run, 1, 0).steps), 5e4, 5e2);
}

// The bound holds, and is no wild guess: 1000 failures that are expected, and Weibull's that come
// in heaps (at shape 0.3 E[X^2] / mtbf^2 is Gamma(7.667) / Gamma(4.333)^2 = 30.2).
TEST(Goodput, FailuresAreBoundedFromAbove) {
  LongRun run = run_of(1, 1e4);
  run.mtbf_s = 10;
  EXPECT_NEAR(most_failures(run), 1001, 1e-6);
  run.shape = 0.3;
  EXPECT_NEAR(most_failures(run), 1000 + 29.2, 0.1);
  for (const double shape : {0.1, 0.3, 1.0, 3.0}) {
    for (const double mtbf : {10.0, 1e4, 1e6}) {
      run.shape = shape;
      run.mtbf_s = mtbf;
      const Estimate failures = play_many(run, 1, testing::cases_of(200), 2).failures;
      EXPECT_LE(failures.mean, most_failures(run) + 2 * failures.half_width) << shape << mtbf;
    }
  }
  // A short horizon: e^((1e4 / 1e6)^1) - 1, where Lorden says 1.01.
  run.shape = 1;
  EXPECT_NEAR(most_failures(run), 0.01005, 1e-5);
}

// A restart of 30, a step of 1, a checkpoint of 5, safe 4 later: e^-(40 / 10).
TEST(Goodput, ChanceOfProgress) {
  LongRun run = run_of(1, 1e4);
  run.mtbf_s = 10;
  run.restart_s = 30;
  run.checkpoint_s = 5;
  run.drain_s = 4;
  EXPECT_NEAR(chance_of_progress(run), std::exp(-4), 1e-12);
}

// Mean 1 away: P(0) = 0.368, P(<= 1) = 0.736, P(<= 2) = 0.920, P(<= 3) = 0.981, P(<= 4) = 0.996.
TEST(Goodput, SparesByPoisson) {
  EXPECT_EQ(spares_needed(100, 100, 0.3), 1);
  EXPECT_EQ(spares_needed(100, 100, 0.9), 3);
  EXPECT_EQ(spares_needed(100, 100, 0.99), 5);
  EXPECT_EQ(spares_needed(1, 5000, 0.5), 5001);
  // Large means: Poisson's median is the mean, its quantiles are those of the normal distribution
  // (2.3263 deviations for 0.99) within a deviation's skew of a sixth of (2.3263^2 - 1).
  EXPECT_EQ(spares_needed(1, 1e8, 0.5), 100'000'001);
  EXPECT_NEAR(static_cast<double>(spares_needed(1, 1e8, 0.99)), 1e8 + 2.3263e4 + 1.7, 5);
  // More than anyone has: the most that is counted, and at once.
  EXPECT_EQ(spares_needed(1, 1e30, 0.5), 2147483647);
}

}  // namespace
}  // namespace lockstep::goodput_test
