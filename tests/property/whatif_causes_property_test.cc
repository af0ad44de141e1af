// Causes of made-up jobs of which the cause is known.
#include <algorithm>
#include <cstdint>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/whatif/causes.h"
#include "base/rng.h"
#include "tests/property/whatif_analysis.h"
#include "tests/support/made_up_steps.h"

namespace lockstep::whatif::whatif_causes_property_test {
namespace {

using made_up::Analysis;
using ::testing::HasSubstr;
using testing::MadeUpJob;
using testing::play;
using testing::uniform;

Causes causes_of(const Analysis& a) {
  const Decomposition workers = blocking_by_worker(a.scene());
  return find_causes(a.scene(), take_apart(a.scene()), workers.ratio, workers.per_step,
                     contribution(a.scene(), last_stage(a.table)));
}

TEST(Causes, ASlowWorkerIsNamed) {
  const Analysis a(
      play({.dp = 8, .stages = 2, .microbatches = 8, .steps = 4}, [](const TraceRow& row) {
        return uniform(row) * (row.rank == 5 && is_compute(row.optype) ? 2.0F : 1.0F);
      }));
  const Causes causes = causes_of(a);
  ASSERT_EQ(causes.causes.size(), 1U);
  EXPECT_EQ(causes.causes[0].pattern, Pattern::kWorker);
  EXPECT_EQ(causes.causes[0].confidence, 1);
  EXPECT_THAT(causes.causes[0].evidence,
              HasSubstr("rank 5 is 2 times slower in forward-compute in 4 of 4 steps"));
  EXPECT_EQ(causes.remedies.front().name, "replace-worker");
  // All others are even, so replacing it gives the even job's time.
  const Analysis even(play({.dp = 8, .stages = 2, .microbatches = 8, .steps = 4}, uniform));
  EXPECT_EQ(causes.remedies.front().step_time_s, mean_nodelay(even.scene()));
}

TEST(Causes, ASlowWorkerOfALightStageIsNamed) {
  const Analysis a(
      play({.dp = 4, .stages = 3, .microbatches = 8, .steps = 2}, [](const TraceRow& row) {
        const float slow = row.rank == 1 ? 1.5F : 1.0F;
        return uniform(row) * (is_compute(row.optype) ? (row.stage == 2 ? 1.4F : slow) : 1.0F);
      }));
  const Causes causes = causes_of(a);
  ASSERT_FALSE(causes.causes.empty());
  EXPECT_EQ(causes.causes[0].pattern, Pattern::kWorker);
  EXPECT_THAT(causes.causes[0].ranks, ::testing::ElementsAre(1));
  EXPECT_NEAR(causes.causes[0].factor, 1.5, 1e-5);
  EXPECT_EQ(causes.slowest.front(), 1U);
}

TEST(Causes, SlowMessagesAreNoFaultOfAWorker) {
  const Analysis a(
      play({.dp = 4, .stages = 2, .microbatches = 8, .steps = 2}, [](const TraceRow& row) {
        return uniform(row) * (row.dp_rank == 2 && is_p2p(row.optype) ? 9.0F : 1.0F);
      }));
  const Causes causes = causes_of(a);
  ASSERT_EQ(causes.causes.size(), 1U);
  EXPECT_EQ(causes.causes[0].pattern, Pattern::kCommunication);
  EXPECT_THAT(causes.causes[0].ranks, ::testing::UnorderedElementsAre(2, 6));
  EXPECT_NEAR(causes.causes[0].factor, 9, 1e-4);
}

TEST(Causes, AHeavyLastStageIsNamed) {
  const Analysis a(
      play({.dp = 4, .stages = 4, .microbatches = 16, .steps = 3}, [](const TraceRow& row) {
        return uniform(row) * (row.stage == 3 && is_compute(row.optype) ? 2.0F : 1.0F);
      }));
  const Causes causes = causes_of(a);
  ASSERT_EQ(causes.causes.size(), 1U);
  EXPECT_EQ(causes.causes[0].pattern, Pattern::kStage);
  EXPECT_EQ(causes.remedies.front().name, "rebalance-stages");
  EXPECT_EQ(causes.steps[0].pattern, Pattern::kStage);
}

TEST(Causes, UnevenSequencesAreNamed) {
  Rng rng(9, "sequences");
  std::vector<float> lengths;
  for (int i = 0; i < 997; ++i) {
    lengths.push_back(0.5F + static_cast<float>(rng.below(64)) / 32);
  }
  const Analysis a(
      play({.dp = 8, .stages = 2, .microbatches = 4, .steps = 5}, [&](const TraceRow& row) {
        const auto at = static_cast<std::size_t>(row.step * 101 + row.dp_rank * 13 + row.seq_id);
        return uniform(row) * (is_compute(row.optype) ? lengths[at % lengths.size()] : 1.0F);
      }));
  const Causes causes = causes_of(a);
  ASSERT_FALSE(causes.causes.empty());
  EXPECT_EQ(causes.causes[0].pattern, Pattern::kSequenceLength);
  EXPECT_GT(causes.sequence_length.correlation, 0.99);
  EXPECT_EQ(causes.remedies.front().name, "redistribute-sequences");
  EXPECT_GT(causes.remedies.front().saves, 0.05);
}

/// One in so many passes stands still for 4 s, whoever's, at times of its own.
float pause(const TraceRow& row, std::uint64_t one_in) {
  const auto at = static_cast<std::uint64_t>((row.step * 1000 + row.rank) * 1000 + row.seq_id);
  Rng rng(at * 2 + (row.optype == TraceOp::kForwardCompute ? 1 : 0), "pauses");
  return is_compute(row.optype) && rng.below(one_in) == 0 ? 4.0F : 0.0F;
}

constexpr MadeUpJob kPaused{.dp = 8, .stages = 2, .microbatches = 8, .steps = 20};

/// The share of the slow steps that have a pattern.
double share_of(const Causes& causes, Pattern pattern) {
  double slow = 0, so = 0;
  for (const StepPattern& step : causes.steps) {
    slow += step.pattern != Pattern::kNone ? 1 : 0;
    so += step.pattern == pattern ? 1 : 0;
  }
  return slow > 0 ? so / slow : 0;
}

const Remedy& planned_gc(const Causes& causes) {
  return *std::ranges::find(causes.remedies, "planned-gc", &Remedy::name);
}

TEST(Causes, PausesThatMoveAreGarbageCollection) {
  const Analysis even(play(kPaused, uniform));
  for (const std::uint64_t one_in : {40U, 150U, 600U}) {
    SCOPED_TRACE(one_in);
    const Analysis a(
        play(kPaused, [&](const TraceRow& row) { return uniform(row) + pause(row, one_in); }));
    const Causes causes = causes_of(a);
    ASSERT_EQ(causes.causes.size(), 1U);
    EXPECT_EQ(causes.causes[0].pattern, Pattern::kGc);
    EXPECT_GE(share_of(causes, Pattern::kGc), 0.9);
    EXPECT_GE(causes.causes[0].confidence, 0.9);
    EXPECT_EQ(causes.remedies.front().name, "planned-gc");
    // A pass of 1.5 s in the mean pauses for 4 / one_in; transfers, which do not, are a few percent
    // of the step.
    const double stretched = 1 + 4 / 1.5 / static_cast<double>(one_in);
    EXPECT_NEAR(planned_gc(causes).step_time_s / mean_nodelay(even.scene()), stretched, 0.02);
  }
}

TEST(Causes, PausesOfOneWorkerAreItsFault) {
  const Analysis a(play(kPaused, [](const TraceRow& row) {
    return uniform(row) + (row.rank == 5 ? pause(row, 8) : 0.0F);
  }));
  const Causes causes = causes_of(a);
  ASSERT_FALSE(causes.causes.empty());
  EXPECT_EQ(causes.causes[0].pattern, Pattern::kWorker);
  EXPECT_THAT(causes.causes[0].ranks, ::testing::ElementsAre(5));
  EXPECT_EQ(share_of(causes, Pattern::kGc), 0);
}

TEST(Causes, ASlowWorkerIsNamedBesidePauses) {
  const Analysis a(play(kPaused, [](const TraceRow& row) {
    return uniform(row) * (row.rank == 3 && is_compute(row.optype) ? 1.125F : 1.0F) +
           pause(row, 300);
  }));
  const Causes causes = causes_of(a);
  ASSERT_EQ(causes.causes.size(), 2U) << causes.causes[0].evidence;
  for (const Cause& cause : causes.causes) {
    if (cause.pattern == Pattern::kWorker) {
      EXPECT_THAT(cause.ranks, ::testing::ElementsAre(3));
      EXPECT_NEAR(cause.factor, 1.125, 1e-5);
    } else {
      EXPECT_EQ(cause.pattern, Pattern::kGc);
    }
  }
}

TEST(Causes, PausesOfAllAtOnceAreNone) {
  MadeUpJob job = kPaused;
  job.stages = 1;
  const Analysis a(play(job, [](const TraceRow& row) {
    const bool first = row.optype == TraceOp::kForwardCompute && row.seq_id == 0;
    return uniform(row) + (row.step % 10 == 7 && first ? 12.0F : 0.0F);
  }));
  const Causes causes = causes_of(a);
  EXPECT_TRUE(causes.causes.empty());
  EXPECT_EQ(causes.steps[6].pattern, Pattern::kOneOff);
  EXPECT_NEAR(planned_gc(causes).saves, 0, 1e-6);
}

// One microbatch in twelve is long, its backward passes by a larger factor, as in measured traces.
TEST(Causes, FewLongSequencesAreNoPauses) {
  const Analysis a(play(kPaused, [](const TraceRow& row) {
    const auto at = static_cast<std::uint64_t>((row.step * 100 + row.dp_rank) * 100 + row.seq_id);
    const bool is_long = Rng(at, "long").below(12) == 0;
    const float longer = row.optype == TraceOp::kBackwardCompute ? 3.0F : 2.0F;
    return uniform(row) * (is_compute(row.optype) && is_long ? longer : 1.0F);
  }));
  const Causes causes = causes_of(a);
  ASSERT_FALSE(causes.causes.empty());
  EXPECT_EQ(causes.causes[0].pattern, Pattern::kSequenceLength);
  for (const Cause& cause : causes.causes) {
    EXPECT_NE(cause.pattern, Pattern::kGc);
    EXPECT_NE(cause.pattern, Pattern::kWorker);
  }
  EXPECT_EQ(share_of(causes, Pattern::kGc), 0);
}

TEST(Causes, AReductionOfOneStageIsCommunicationInEveryStep) {
  const Analysis a(
      play({.dp = 4, .stages = 4, .microbatches = 8, .steps = 5}, [](const TraceRow& row) {
        const bool slow = row.stage == 1 && row.optype == TraceOp::kGradsReduceScatter;
        return slow ? 12.0F : uniform(row);
      }));
  const Causes causes = causes_of(a);
  ASSERT_EQ(causes.causes.size(), 1U);
  EXPECT_EQ(causes.causes[0].pattern, Pattern::kCommunication);
  EXPECT_EQ(share_of(causes, Pattern::kCommunication), 1);
}

TEST(Causes, AnEvenJobHasNone) {
  const Analysis a(play({.dp = 2, .stages = 2, .microbatches = 4}, uniform));
  EXPECT_TRUE(causes_of(a).causes.empty());
}

}  // namespace
}  // namespace lockstep::whatif::whatif_causes_property_test
