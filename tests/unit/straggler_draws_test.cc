#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "simulator/replay/distribution.h"
#include "simulator/replay/step_sample.h"
#include "simulator/replay/straggler_plan.h"
#include "tests/support/error_of.h"
#include "tests/support/run.h"
#include "trace/read_trace.h"

namespace lockstep::straggler_draws_test {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;

TEST(Distribution, MeansAndDeviationsAreThoseNamed) {
  for (const char* name : {"normal", "lognormal", "uniform", "exponential"}) {
    const Distribution distribution = Distribution::of_sizes(name, 0.2);
    Rng rng(1, name);
    double sum = 0, squares = 0;
    constexpr int kDraws = 100'000;
    for (int i = 0; i < kDraws; ++i) {
      const double x = distribution.draw(rng);
      sum += x;
      squares += x * x;
    }
    const double mean = sum / kDraws;
    EXPECT_NEAR(mean, 1, 0.005) << name;
    EXPECT_NEAR(std::sqrt(squares / kDraws - mean * mean), 0.2, 0.005) << name;
  }
}

// Of slowdowns the exponential one is never below 1: mean 1 + s. Of sizes it has a mean of 1 and no
// deviation above that.
TEST(Distribution, ExponentialSlowdownsAndSizes) {
  const auto mean_and_least = [](const Distribution& distribution) {
    Rng rng(1, "exponential");
    double sum = 0, least = 10;
    constexpr int kDraws = 100'000;
    for (int i = 0; i < kDraws; ++i) {
      const double x = distribution.draw(rng);
      sum += x;
      least = std::min(least, x);
    }
    return std::pair(sum / kDraws, least);
  };
  const auto [slowdown, least_slowdown] = mean_and_least(Distribution::named("exponential", 0.5));
  EXPECT_NEAR(slowdown, 1.5, 0.01);
  EXPECT_NEAR(least_slowdown, 1, 1e-4);
  const auto [size, least_size] = mean_and_least(Distribution::of_sizes("exponential", 1));
  EXPECT_NEAR(size, 1, 0.01);
  EXPECT_NEAR(least_size, 0, 1e-4);
  EXPECT_THAT(error_of([] { Distribution::of_sizes("exponential", 1.5); }),
              HasSubstr("0 to 1: exponential sizes"));
}

TEST(Distribution, HistogramDrawsByWeight) {
  const Distribution histogram = Distribution::histogram("value,weight\n1,3\n2,1\n", "h.csv");
  Rng rng(1, "histogram");
  int slow = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double x = histogram.draw(rng);
    ASSERT_TRUE(x == 1 || x == 2);
    slow += x == 2 ? 1 : 0;
  }
  EXPECT_NEAR(slow, 2500, 200);
}

TEST(Distribution, HistogramErrorsNameLineAndField) {
  EXPECT_THAT(error_of([] { Distribution::histogram("1,1\n2,-1\n", "h.csv"); }),
              HasSubstr("h.csv:2: weight"));
  EXPECT_THAT(error_of([] { Distribution::histogram("", "h.csv"); }), HasSubstr("no entry"));
}

/// Two jobs side by side. The first has eight ranks: two stages of two data-parallel ranks of two
/// context-parallel ones, rank = 4 stage + 2 dp + cp; its experts are spread over pairs. The second
/// has four: two stages of two data-parallel ranks, rank = 8 + 2 stage + dp, experts over pairs.
class TwoJobs : public ::testing::Test {
 protected:
  TwoJobs() {
    using Groups = std::vector<std::vector<std::int32_t>>;
    const auto add = [&](GroupKind kind, const Groups& groups, bool plain = true) {
      families_.emplace_back(kind, groups, 12, plain);
    };
    add(GroupKind::kTp, {{0, 4}, {1, 5}, {2, 6}, {3, 7}}, false);  // copies of the model: tp.model
    add(GroupKind::kCp, {{0, 1}, {2, 3}, {4, 5}, {6, 7}});
    add(GroupKind::kDp, {{0, 2}, {1, 3}, {4, 6}, {5, 7}}, false);  // dp.plain
    add(GroupKind::kDp, {{0, 1, 2, 3}, {4, 5, 6, 7}});
    add(GroupKind::kPp, {{0, 4}, {1, 5}, {2, 6}, {3, 7}});
    add(GroupKind::kEp, {{0, 2}, {1, 3}, {4, 6}, {5, 7}});
    add(GroupKind::kDp, {{8, 9}, {10, 11}});
    add(GroupKind::kPp, {{8, 10}, {9, 11}});
    add(GroupKind::kEp, {{8, 9}, {10, 11}});
    context_.families = families_;
    context_.server_of_rank.assign(12, 0);
    context_.node_of_rank.assign(12, NodeId(0));
    context_.seed = 1;
    pass_.type = OpType::kForward;
    pass_.compute = Time::us(1'000'000);
    pass_.microbatch = 0;
  }

  /// By how much a pass of each rank takes longer.
  std::vector<double> factors(const std::string& spec, const ProgramOp& op) const {
    const std::vector<Straggler> one{Straggler::parse(spec)};
    const StragglerPlan plan(one, context_);
    std::vector<double> found;
    for (std::int32_t rank = 0; rank < 12; ++rank) {
      found.push_back(plan.duration(rank, 0, op, Time()) / op.compute);
    }
    return found;
  }
  std::vector<double> factors(const std::string& spec) const { return factors(spec, pass_); }

  std::vector<CommFamily> families_;
  StragglerContext context_;
  ProgramOp pass_;
};

// A stage of any job; the second one's are its own.
TEST_F(TwoJobs, AStageIsThatOfEachJob) {
  EXPECT_THAT(factors("stage:1:1.5"), ElementsAre(1, 1, 1, 1, 1.5, 1.5, 1.5, 1.5, 1, 1, 1.5, 1.5));
}

// Ranks that work on the same sequences draw the same lengths: those of a data-parallel rank, on
// all stages and context-parallel ranks. Others, and the other job, draw others.
TEST_F(TwoJobs, SequencesAreThoseOfADataParallelRank) {
  const std::vector<double> found = factors("seqlen:0.5");
  for (const std::int32_t rank : {1, 4, 5}) {
    EXPECT_EQ(found[static_cast<std::size_t>(rank)], found[0]);
    EXPECT_EQ(found[static_cast<std::size_t>(rank + 2)], found[2]);
  }
  EXPECT_EQ(found[8], found[10]);
  EXPECT_EQ(found[9], found[11]);
  EXPECT_EQ(std::set<double>(found.begin(), found.end()).size(), 4U);
}

// The sum of squares: lengths of mean 1 and deviation d cost 1 + d^2 times even ones, and a
// microbatch of one sequence nothing. 0.5 of a pass is attention: 1 + 0.5 x 0.3^2 = 1.045.
TEST_F(TwoJobs, AttentionCostsTheSumOfSquares) {
  EXPECT_NEAR(factors("seqlen:0.5:200000:uniform:0.3")[0], 1.045, 5e-4);
  EXPECT_NEAR(factors("seqlen:1:200000:uniform:0.5")[0], 1.25, 2e-3);
  EXPECT_NEAR(factors("seqlen:1:200000:exponential:0.5")[0], 1.25, 5e-3);
  EXPECT_NEAR(factors("seqlen:1:200000:exponential:1")[0], 2, 0.02);
  EXPECT_EQ(factors("seqlen:0.5:1")[0], 1);
  ProgramOp optimizer = pass_;
  optimizer.type = OpType::kOptimizer;
  EXPECT_EQ(factors("seqlen:0.5", optimizer)[0], 1);
}

// Of eight lengths x with a deviation of 1, each an exponential: their shares of the sum are
// Dirichlet's, so 8 sum x^2 / (sum x)^2 is 8 x 8 x 2 / (8 x 9) = 16 / 9 in the mean.
TEST_F(TwoJobs, EightExponentialLengths) {
  double sum = 0;
  for (context_.step = 0; context_.step < 4000; ++context_.step) {
    sum += factors("seqlen:1:8:exponential:1")[0];
  }
  EXPECT_NEAR(sum / 4000, 16 / 9.0, 0.03);
}

// The loads of a group have a mean of 1, whatever is drawn; all-to-alls carry what passes compute.
TEST_F(TwoJobs, LoadsOfExpertsHaveAMeanOfOne) {
  const std::vector<Straggler> one{Straggler::parse("experts:0.5:0.4")};
  const StragglerPlan plan(one, context_);
  const std::vector<double> found = factors("experts:0.5:0.4");
  std::set<double> different;
  for (std::size_t family = 0; family < families_.size(); ++family) {
    ProgramOp transfer;
    transfer.family = static_cast<std::int32_t>(family);
    transfer.microbatch = 0;
    if (families_[family].kind() != GroupKind::kEp) {
      EXPECT_THAT(plan.loads_of(transfer, 0), ::testing::IsEmpty());
      continue;
    }
    for (std::size_t group = 0; group < families_[family].groups().size(); ++group) {
      const std::vector<double> loads = plan.loads_of(transfer, static_cast<std::int32_t>(group));
      ASSERT_EQ(loads.size(), 2U);
      EXPECT_NEAR(loads[0] + loads[1], 2, 1e-12);
      different.insert(loads[0]);
      for (std::size_t place = 0; place < 2; ++place) {
        const auto rank = static_cast<std::size_t>(families_[family].groups()[group][place]);
        EXPECT_NEAR(found[rank], 1 + 0.5 * (loads[place] - 1), 1e-9);
      }
    }
  }
  EXPECT_EQ(different.size(), 6U);
}

// Every pass takes a value of the histogram; named distributions are tested above.
TEST_F(TwoJobs, JitterOfAHistogram) {
  const testing::ScratchFolder folder;
  write_file(folder / "h.csv", "value,weight\n1,1\n1.5,1\n");
  const std::string spec = "jitter:0-9:" + (folder / "h.csv");
  int slow = 0;
  for (std::int64_t step = 0; step < 40; ++step) {
    context_.step = step;
    const std::vector<double> found = factors(spec);
    for (std::size_t rank = 0; rank < 10; ++rank) {
      ASSERT_TRUE(found[rank] == 1 || found[rank] == 1.5);
      slow += found[rank] == 1.5 ? 1 : 0;
    }
    EXPECT_EQ(found[10], 1);
  }
  EXPECT_NEAR(slow, 200, 60);
}

// Half of the time at 2/3 of the clock: a second of work takes 1 / (0.5 + 0.5 / 1.5) = 1.2 s.
TEST_F(TwoJobs, ThrottledForAPartOfTheTime) {
  const std::vector<double> found = factors("thermal:3:1.5:5ms:0.5");
  EXPECT_NEAR(found[3], 1.2, 1e-3);
  EXPECT_EQ(found[4], 1);
}

/// The mean of what a step of one GPU takes, over that of its work.
double mean_step(const std::string& spec, Time work, int steps) {
  StragglerContext context;
  context.server_of_rank = {0};
  context.seed = 7;
  ProgramOp pass;
  pass.type = OpType::kForward;
  pass.compute = work;
  const std::vector<Straggler> one{Straggler::parse(spec)};
  double sum = 0;
  for (context.step = 0; context.step < steps; ++context.step) {
    sum += StragglerPlan(one, context).duration(0, 0, pass, Time()) / work;
  }
  return sum / steps;
}

// Half of the time at half the speed: 1 / (0.5 + 0.5 / 2) = 4/3 however long a step is against the
// period of 1 s. A short step takes 1 or 2 times its work: deviation 0.47, of the mean of 20,000
// 0.003. (It is 1.5 where steps begin evenly in time.)
TEST(SlowForAPartOfTheTime, ThrottledStepsTakeTheMeanSpeed) {
  for (const Time work : {Time::us(1000), Time::us(400'000), Time::us(3'300'000)}) {
    EXPECT_NEAR(mean_step("thermal:0:2:1s:0.5", work, 20'000), 4 / 3.0, 0.012) << to_text(work);
  }
  // Faster for a tenth of the time, and throttled throughout.
  EXPECT_NEAR(mean_step("thermal:0:0.5:1s:0.1", Time::us(1000), 20'000), 1 / 1.1, 0.005);
  EXPECT_NEAR(mean_step("thermal:0:2:1s:1", Time::us(1000), 10), 2, 1e-6);
}

// A pause of 50 ms a second: 1 / 0.95 = 1.0526. A step of 20 ms meets one with probability 20 /
// 950: deviation 50 x 0.144 = 7.2 ms, of the mean of 50,000 0.16 %. (It is 1.115 where steps begin
// evenly in time: 0.05 x 25 ms + 0.95 x 50 ms x 20 / 950 = 2.3 ms longer.)
TEST(SlowForAPartOfTheTime, StepsBeginInNoPause) {
  EXPECT_NEAR(mean_step("gc:0:50ms:1s", Time::us(20'000), 50'000), 1 / 0.95, 0.008);
  EXPECT_NEAR(mean_step("gc:0:50ms:1s", Time::us(400'000), 20'000), 1 / 0.95, 0.002);
  EXPECT_NEAR(mean_step("gc:0:50ms:1s", Time::us(3'300'000), 5000), 1 / 0.95, 0.001);
}

// A pass of 10 ms meets a pause of 3 ms, or not, each rank by itself; where pauses are planned all
// ranks do alike.
TEST_F(TwoJobs, PausesComeTogetherWherePlanned) {
  pass_.compute = Time::us(10'000);
  std::set<double> apart;
  std::set<std::size_t> together;
  for (std::int64_t step = 0; step < 20; ++step) {
    context_.step = step;
    for (const double factor : factors("gc:*:3ms:50ms")) {
      apart.insert(factor);
    }
    const std::vector<double> planned = factors("gc:*:3ms:50ms:yes");
    together.insert(std::set<double>(planned.begin(), planned.end()).size());
  }
  EXPECT_NEAR(*apart.begin(), 1, 1e-9);
  EXPECT_NEAR(*apart.rbegin(), 1.3, 1e-9);
  EXPECT_EQ(together, std::set<std::size_t>{1});
}

// Of a trace with tensor- or context-parallel workers each rank takes the factors of the one at its
// place. Rank 3 of the first job (stage 0, dp 1, cp 1) was slow, so is the second job's rank 9 (dp
// 1; it has no context-parallel ranks, and takes the first) not.
TEST_F(TwoJobs, ATraceOfAllWorkersTellsWhichOfThemIsSlow) {
  const testing::ScratchFolder folder;
  Trace trace;
  for (int rank = 0; rank < 8; ++rank) {
    const float duration = rank == 3 ? 0.03F : 0.02F;
    add_row(trace, {rank / 2 % 2, rank / 4, rank, 0, TraceOp::kForwardCompute, 0, duration, 0, 0, 0,
                    rank / 4});
    trace.extra.bytes.push_back(0);
    trace.extra.group.emplace_back();
    trace.extra.tp_rank.push_back(0);
    trace.extra.cp_rank.push_back(rank % 2);
    trace.extra.ep_rank.push_back(0);
  }
  write_trace(trace, folder / "t.csv");
  std::vector<double> wanted(12, 1);
  wanted[3] = 1.5;
  const std::vector<double> found = factors("trace:" + (folder / "t.csv"));
  for (std::size_t rank = 0; rank < 12; ++rank) {
    EXPECT_NEAR(found[rank], wanted[rank], 1e-6) << rank;
  }
}

// 1 … 10 us: mean 5.5, deviation sqrt(82.5 / 9) = 3.0277 us, interval 2.2622 x 3.0277 / sqrt(10).
TEST(StepSample, SummaryByHand) {
  StepSample sample;
  for (int i = 10; i >= 1; --i) {
    sample.totals.push_back(Time::us(i));
  }
  summarise(sample);
  EXPECT_EQ(sample.mean, Time::ns(5500));
  EXPECT_NEAR(sample.deviation.us(), 3.02765, 1e-5);
  EXPECT_NEAR(sample.half_width.us(), 2.16585, 1e-4);
  EXPECT_EQ(sample.p50, Time::us(5));
  EXPECT_EQ(sample.p90, Time::us(9));
  EXPECT_EQ(sample.p99, Time::us(10));
}

TEST(StepSample, PricesEachByPairedRuns) {
  const std::vector<Straggler> stragglers{Straggler::parse("gpu:0:2"), Straggler::parse("gpu:1:3")};
  std::atomic<int> runs = 0;
  const RunStep run = [&](std::span<const Straggler> given, std::int64_t) {
    ++runs;
    Time total = Time::us(10);
    for (const Straggler& each : given) {
      total = std::max(total, Time::us(10) * std::int64_t(each.number(1, 0, 10)));
    }
    return total;
  };
  std::atomic<int> steps = 0;
  const auto step = [&] {
    ++steps;
    StepResult result;
    result.total = Time::us(30);
    return result;
  };
  for (const int threads : {1, 3}) {
    const StepResult result = price_stragglers(stragglers, threads, step, run);
    EXPECT_EQ(result.total, Time::us(30));
    EXPECT_EQ(result.clean, Time::us(10));
    ASSERT_EQ(result.stragglers.size(), 2U);
    EXPECT_EQ(result.stragglers[0].without, Time::us(30));
    EXPECT_EQ(result.stragglers[1].without, Time::us(20));
  }
  EXPECT_EQ(runs, 6);
  // Without the only one is without any.
  const StepResult alone = price_stragglers(std::span(stragglers).first(1), 2, step, run);
  EXPECT_EQ(runs, 7);
  EXPECT_EQ(steps, 3);
  ASSERT_EQ(alone.stragglers.size(), 1U);
  EXPECT_EQ(alone.stragglers[0].without, Time::us(10));
  const StepResult none = price_stragglers({}, 2, step, run);
  EXPECT_EQ(runs, 7);
  EXPECT_TRUE(none.stragglers.empty());
}

TEST(StepSample, EachIsPricedWithEqualDrawsOfTheOthers) {
  // What a straggler draws goes by its place among all of the run's, whoever is left out.
  const std::vector<Straggler> stragglers{Straggler::parse("gpu:0:1"),
                                          Straggler::parse("jitter:*:normal:0.1"),
                                          Straggler::parse("jitter:*:normal:0.2")};
  std::mutex mutex;
  std::vector<std::vector<std::uint64_t>> places;
  const RunStep run = [&](std::span<const Straggler> given, std::int64_t) {
    const std::lock_guard lock(mutex);
    std::vector<std::uint64_t>& of = places.emplace_back();
    for (std::size_t i = 0; i < given.size(); ++i) {
      of.push_back(given[i].place().value_or(i));
    }
    return Time::us(1);
  };
  price_stragglers(
      stragglers, 1, [] { return StepResult(); }, run);
  EXPECT_EQ(places, (std::vector<std::vector<std::uint64_t>>{{}, {1, 2}, {0, 2}, {0, 1}}));
}

TEST(StragglerPlan, DrawsGoByTheKeptPlace) {
  StragglerContext context;
  context.server_of_rank.assign(4, 0);
  const std::vector<Straggler> both{Straggler::parse("gpu:0:1"),
                                    Straggler::parse("jitter:*:normal:0.1")};
  std::vector<Straggler> second(both.begin() + 1, both.end());
  ProgramOp op;
  op.type = OpType::kForward;
  op.compute = Time::us(1000);
  const auto duration = [&](std::span<const Straggler> of) {
    return StragglerPlan(of, context).duration(1, 0, op, Time());
  };
  EXPECT_NE(duration(second), duration(both));
  second.front().keep_place(1);
  EXPECT_EQ(duration(second), duration(both));
}

}  // namespace
}  // namespace lockstep::straggler_draws_test
