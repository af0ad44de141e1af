// Two runs of a step side by side.
#include "analysis/compare/steps.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace lockstep::compare::steps_test {
namespace {

/// Rank 0 computes 1 s and reaches the all-reduce at 1 s, rank 1 `late`; both leave 0.5 s after.
std::vector<PhysicalLog> run(double late) {
  PhysicalLog log;
  log.names = {"gemm", "allreduce"};
  log.groups = {"dp"};
  for (const std::int32_t rank : {0, 1}) {
    const double compute = rank == 0 ? 1 : late;
    log.ops.push_back({.rank = rank, .name = 0, .begin_s = 0, .duration_s = compute});
    log.ops.push_back({.rank = rank,
                       .kind = OpKind::kCommunication,
                       .op = CommType::kAllReduce,
                       .name = 1,
                       .group = 0,
                       .group_size = 2,
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

// A table of layers calls the computation and the collective of a phase alike.
TEST(Steps, AComputationAndACollectiveOfOneNameStayApart) {
  std::vector<PhysicalLog> first = run(1), second = run(2);
  for (PhysicalLog* log : {&first[0], &second[0]}) {
    log->names = {"layer", "layer"};
  }
  const StepComparison c = compare_steps(first, second);
  EXPECT_EQ(c.aligned, 4U);
  EXPECT_EQ(c.left, 0U);
  EXPECT_DOUBLE_EQ(c.first.compute_s, 1);
  EXPECT_DOUBLE_EQ(c.first.transfer_s, 0.5);
  EXPECT_DOUBLE_EQ(c.second.compute_s, 1.5);
  EXPECT_DOUBLE_EQ(c.second.wait_s, 0.5);
  EXPECT_DOUBLE_EQ(c.second.transfer_s, 0.5);
  ASSERT_EQ(c.ops.size(), 2U);
  EXPECT_EQ(c.ops[0].name, "layer (compute)");
  EXPECT_EQ(c.ops[1].name, "layer (communication)");
  // A collective that only has its name in common with a computation there is found by its size.
  second[0].names = {"layer", "nccl"};
  EXPECT_EQ(compare_steps(first, second).left, 0U);
}

/// A log of one rank: an all-reduce of a group of two that begins and ends then, by its own clock.
PhysicalLog rank(std::int32_t number, const std::string& group, double begin, double end) {
  PhysicalLog log;
  log.names = {"ncclDevKernel_AllReduce"};
  log.groups = {group};
  log.facts["begin_s"] = std::to_string(begin);
  log.ops.push_back({.rank = number,
                     .kind = OpKind::kCommunication,
                     .op = CommType::kAllReduce,
                     .group = 0,
                     .group_size = 2,
                     .bytes = 1024,
                     .duration_s = end - begin});
  return log;
}

// Groups {0, 1} and {2, 3} reduce one after the other: nobody waits.
TEST(Steps, GroupsDoNotWaitForEachOther) {
  const std::vector<PhysicalLog> one = {rank(0, "tp [0, 1]", 1, 2), rank(1, "tp [0, 1]", 1, 2),
                                        rank(2, "tp [2, 3]", 1.5, 2.5),
                                        rank(3, "tp [2, 3]", 1.5, 2.5)};
  const StepComparison c = compare_steps(one, one);
  EXPECT_DOUBLE_EQ(c.first.wait_s, 0);
  EXPECT_DOUBLE_EQ(c.first.transfer_s, 1);
}

// One name for both groups, and no list of ranks: who ends together belongs together.
TEST(Steps, GroupsOfOneNameAreToldApartByTheirEnds) {
  const std::vector<PhysicalLog> one = {rank(0, "tp", 1, 2), rank(1, "tp", 1.25, 2),
                                        rank(2, "tp", 1.5, 2.5), rank(3, "tp", 1.5, 2.5)};
  EXPECT_NEAR(compare_steps(one, one).first.wait_s, 0.25 / 4, 1e-9);
}

// Two ranks of a group of four: the others may have come last.
TEST(Steps, RanksThatNoLogShowsAreTold) {
  std::vector<PhysicalLog> one = {rank(0, "tp", 1, 2), rank(1, "tp", 1.5, 2)};
  EXPECT_TRUE(compare_steps(one, one).notes.empty());
  for (PhysicalLog& log : one) {
    log.ops[0].group_size = 4;
  }
  const StepComparison c = compare_steps(one, one);
  EXPECT_DOUBLE_EQ(c.first.wait_s, 0.25);
  ASSERT_EQ(c.notes.size(), 2U);
  EXPECT_EQ(c.notes[0].find("first run: 2 communications are of groups of which no log"), 0U)
      << c.notes[0];
}

TEST(Steps, RanksOfTheJobThatNoLogShowsAreTold) {
  std::vector<PhysicalLog> some = {rank(0, "tp", 1, 2), rank(1, "tp", 1.5, 2)};
  some[0].facts["world_size"] = "2";
  EXPECT_TRUE(compare_steps(some, some).notes.empty());
  some[0].facts["world_size"] = "16";
  const StepComparison c = compare_steps(some, some);
  ASSERT_EQ(c.notes.size(), 2U);
  EXPECT_EQ(c.notes[0].find("first run: its logs show 2 of 16 ranks"), 0U) << c.notes[0];
}

// Rank 1's clock is 100 s ahead; it comes 0.5 s after rank 0, and both leave together.
TEST(Steps, ClocksAreSetOverEachOther) {
  const StepComparison c = compare_steps({rank(0, "dp", 1, 2), rank(1, "dp", 101.5, 102)},
                                         {rank(0, "dp", 1, 2), rank(1, "dp", 1.5, 2)});
  EXPECT_NEAR(c.first.wait_s, 0.25, 1e-6);
  EXPECT_NEAR(c.second.wait_s, 0.25, 1e-6);
  ASSERT_EQ(c.notes.size(), 1U);
  EXPECT_NE(c.notes[0].find("first run: the clocks of 1 of 2 logs"), std::string::npos);
}

TEST(Steps, SumsAreOfAStep) {
  std::vector<PhysicalLog> twice = {rank(0, "dp", 1, 2)};
  twice[0].ops.push_back(twice[0].ops[0]);
  twice[0].steps = {{.step = 4, .time_s = 3}, {.step = 5, .time_s = 5}};
  const StepComparison c = compare_steps({rank(0, "dp", 1, 2)}, twice);
  EXPECT_DOUBLE_EQ(c.second.transfer_s, 1);
  EXPECT_EQ(c.second_times.steps, 2U);
  EXPECT_DOUBLE_EQ(c.second_times.step_s, 4);
  EXPECT_DOUBLE_EQ(c.difference().value(), 3);  // 4 s against 1 s
  EXPECT_EQ(c.notes.size(), 1U);                // the first marks no steps
}

// A measured kernel and a simulated collective have different names, but operation and size.
TEST(Steps, CollectivesOfOtherNamesHaveACounterpart) {
  PhysicalLog simulated = rank(0, "tp", 0, 3);
  simulated.names = {"forward 0 layer 0 mlp.out reduce"};
  const StepComparison c = compare_steps({rank(0, "tp", 1, 2)}, {simulated});
  EXPECT_EQ(c.aligned, 1U);
  EXPECT_EQ(c.left, 0U);
  ASSERT_EQ(c.ops.size(), 1U);
  EXPECT_EQ(c.ops[0].name, "allreduce of 1024 bytes");
}

// What lies outside of the marked steps is of none of them; sums are over the steps that ranks
// have.
TEST(Steps, OnlyWhatIsInStepsCounts) {
  PhysicalLog zero = rank(0, "dp", 1, 2), one = rank(1, "dp", 1, 2);
  zero.ops[0].step = 4;
  zero.ops.push_back(zero.ops[0]);
  zero.ops[1].step = -1;
  zero.steps = {{.step = 4, .time_s = 3}};
  one.ops[0].step = 5;
  one.steps = {{.step = 5, .time_s = 3}};
  const StepComparison c = compare_steps({zero, one}, {rank(0, "dp", 1, 2)});
  EXPECT_EQ(c.first_times.steps, 2U);
  EXPECT_DOUBLE_EQ(c.first.transfer_s, 1);  // rank 0 in step 4, rank 1 in step 5
  EXPECT_EQ(c.ops.at(0).first_count, 2U);
  ASSERT_GE(c.notes.size(), 1U);
  EXPECT_EQ(c.notes[0],
            "first run: 1 operations outside of the steps that the logs mark were left out");
}

// One rank can be in two logs with other steps, as profilers write them, and in no step twice.
TEST(Steps, ARankIsInOneLog) {
  std::vector<PhysicalLog> logs = {rank(0, "dp", 1, 2), rank(1, "dp", 1, 2), rank(0, "dp", 3, 4)};
  logs[0].file = "a.json";
  logs[2].file = "b.json";
  try {
    compare_steps(logs, {logs[1]});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("b.json: this log is of rank 0, as a.json is"),
              std::string::npos)
        << error.what();
  }
  logs[0].ops[0].step = 7;
  logs[2].ops[0].step = 8;
  EXPECT_DOUBLE_EQ(compare_steps(logs, {logs[1]}).first.transfer_s, 1);
  logs[2].ops[0].step = -1;  // may be any
  EXPECT_THROW(compare_steps(logs, {logs[1]}), Error);
  logs[2].ops[0].step = 7;
  EXPECT_THROW(compare_steps(logs, {logs[1]}), Error);
}

// The first step of three runs took 5, 6 and 7 s: not one step that took 7.
TEST(Steps, LogsOfStepsAloneAreRuns) {
  std::vector<PhysicalLog> runs(3);
  for (std::size_t i = 0; i < 3; ++i) {
    runs[i].groups = {"run 1"};
    runs[i].steps = {{.step = 1, .run = 0, .time_s = 5 + static_cast<double>(i)}};
  }
  const StepComparison c = compare_steps(runs, {runs[0]});
  EXPECT_EQ(c.first_times.steps, 3U);
  EXPECT_DOUBLE_EQ(c.first_times.step_s, 6);
}

TEST(Steps, TimesOfStepsAlone) {
  PhysicalLog a, b;
  a.steps = {{.step = 1, .time_s = 5.1}, {.step = 2, .time_s = 5.3}, {.step = 3, .time_s = 5.2}};
  b.steps = {{.step = 1, .time_s = 5.72}};
  EXPECT_NEAR(compare_steps({a}, {b}).difference().value(), 0.1, 1e-9);
  EXPECT_THROW(compare_steps({PhysicalLog()}, {a}), Error);
}

TEST(Steps, NoRelativeDifferenceToNoTime) {
  PhysicalLog none = rank(0, "dp", 1, 1);
  none.facts.clear();
  const StepComparison c = compare_steps({none}, {rank(0, "dp", 1, 2)});
  EXPECT_EQ(c.difference(), std::nullopt);
  EXPECT_NE(steps_json(c).find("\"difference\": null"), std::string::npos) << steps_json(c);
}

// What is named as waiting is waiting; a whole is its parts.
TEST(Steps, WholesAreNotCountedBesideTheirParts) {
  PhysicalLog log = rank(0, "dp", 1, 2);
  log.ops.push_back({.kind = OpKind::kWhole, .duration_s = 4});
  log.ops.push_back({.kind = OpKind::kWait, .duration_s = 2});
  log.names.push_back("total");
  log.names.push_back("NEGOTIATE");
  log.ops[1].name = 1;
  log.ops[2].name = 2;
  const StepComparison c = compare_steps({log}, {log});
  EXPECT_DOUBLE_EQ(c.first.transfer_s, 1);
  EXPECT_DOUBLE_EQ(c.first.wait_s, 2);
}

// Rank 1's clock goes 100 us a second too fast: when it entered and left tells nothing, how long it
// was in there does.
TEST(Steps, WaitsOfSeveralLogsNeedNoClocks) {
  std::vector<PhysicalLog> logs = {rank(0, "dp", 1, 2), rank(1, "dp", 1.6, 2)};
  for (PhysicalLog& log : logs) {
    for (int k = 1; k < 5; ++k) {
      OpRow op = log.ops[0];
      op.begin_s = op.begin_s + k * (op.rank == 0 ? 1 : 1.0001);
      log.ops.push_back(op);
    }
  }
  const StepComparison c = compare_steps(logs, logs);
  EXPECT_NEAR(c.first.wait_s, 5 * 0.6 / 2, 1e-9);
  EXPECT_NEAR(c.first.transfer_s, 5 * 0.4, 1e-9);
}

// A trace that is cut off has lost what its times count from.
TEST(Steps, ALogWithoutItsBaseHasThatOfTheOthers) {
  std::vector<PhysicalLog> logs = {rank(0, "dp", 1, 2), rank(1, "dp", 1.6, 2)};
  logs[0].facts["baseTimeNanoseconds"] = "1720000000000000000";
  EXPECT_NEAR(compare_steps(logs, logs).first_times.step_s, 1, 1e-9);
}

// PyTorch 2.2 tells the size of a group and not its name: two pairs that do the same 8 us apart.
TEST(JoinRanks, ReplicasWithoutNamesStayApart) {
  std::vector<PhysicalLog> logs;
  for (const std::int32_t number : {0, 1, 2, 3}) {
    const double late = number < 2 ? 0 : 8e-6;
    logs.push_back(rank(number, "", 1 + late + 1e-4 * (number % 2), 2 + late));
    logs.back().ops[0].group = -1;
  }
  const JoinedRun run = join_ranks(logs);
  ASSERT_EQ(run.joined.size(), 2U);
  EXPECT_EQ(run.joined[0].members.size(), 2U);
  EXPECT_EQ(run.joined[0].members[1].log, 1U);
  // A second step, of three of the ranks.
  for (PhysicalLog& log : logs) {
    OpRow again = log.ops[0];
    log.ops[0].step = 0;
    again.step = 1;
    again.begin_s += 5;
    if (again.rank < 3) {
      log.ops.push_back(again);
    }
  }
  EXPECT_EQ(join_ranks(logs).joined.size(), 3U);
  for (PhysicalLog& log : logs) {
    log.ops.resize(1);
  }
  // Where a group has all ranks of the run, it is known.
  for (PhysicalLog& log : logs) {
    log.ops[0].group_size = 4;
  }
  ASSERT_EQ(join_ranks(logs).joined.size(), 1U);
  EXPECT_EQ(join_ranks(logs).joined[0].members.size(), 4U);
}

// Ranks measured 1 s and 0.4 s of one collective: it took 0.4 s from when the last one came.
TEST(JoinRanks, TheLastArrivalMeasuresTheCollective) {
  std::vector<PhysicalLog> logs = {rank(0, "dp", 1, 2), rank(1, "dp", 1.6, 2)};
  for (PhysicalLog& log : logs) {
    log.settings.emplace_back();
    log.comms.push_back({.op = CommType::kAllReduce,
                         .ranks = 2,
                         .bytes = Bytes(1024),
                         .time_s = log.ops[0].duration_s,
                         .waits = true,
                         .op_row = 0});
  }
  std::vector<PhysicalLog> alone = {logs[0]};
  EXPECT_EQ(take_last_arrivals(logs), 1U);
  ASSERT_EQ(logs[0].comms.size(), 1U);
  EXPECT_TRUE(logs[1].comms.empty());
  EXPECT_NEAR(logs[0].comms[0].time_s, 0.4, 1e-9);
  EXPECT_FALSE(logs[0].comms[0].waits);
  EXPECT_EQ(take_last_arrivals(alone), 0U);
  EXPECT_TRUE(alone[0].comms.at(0).waits);
}

// Rank 1 gives its part to a gather and leaves at once; the root waits for rank 2, which comes 0.4
// s before the end.
TEST(JoinRanks, GathersLastUntilTheLastOneLeaves) {
  std::vector<PhysicalLog> logs = {rank(0, "tp", 1, 2), rank(1, "tp", 1, 1.1),
                                   rank(2, "tp", 1.6, 2)};
  for (PhysicalLog& log : logs) {
    log.names = {"gather"};
    log.ops[0].op = CommType::kNone;
    log.ops[0].group_size = 3;
    log.settings.emplace_back();
    log.comms.push_back({.ranks = 3,
                         .bytes = Bytes(1024),
                         .time_s = log.ops[0].duration_s,
                         .waits = true,
                         .op_row = 0});
  }
  EXPECT_EQ(take_last_arrivals(logs), 1U);
  ASSERT_EQ(logs[0].comms.size(), 1U);
  EXPECT_NEAR(logs[0].comms[0].time_s, 0.4, 1e-9);
  EXPECT_FALSE(logs[0].comms[0].waits);
}

}  // namespace
}  // namespace lockstep::compare::steps_test
