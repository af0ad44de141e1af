// Replays by formula, computed by hand: a collective takes 3 us, a message 2 us.
#include "simulator/replay/formula_runs.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "simulator/replay/replay.h"

namespace lockstep::formula_runs_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ProgramOp compute(double us) {
  ProgramOp op;
  op.compute = Time::seconds(us * 1e-6);
  return op;
}

ProgramOp all_reduce() {
  ProgramOp op;
  op.comm = CommType::kAllReduce;
  op.bytes = Bytes(100);
  op.family = 0;
  return op;
}

ProgramOp message(std::int32_t peer, bool send) {
  ProgramOp op;
  op.comm = CommType::kSendRecv;
  op.bytes = Bytes(100);
  op.peer = peer;
  op.send = send;
  return op;
}

/// Operations one after the other.
Program in_line(const std::vector<ProgramOp>& ops) {
  Program program({StreamOrder::kProgram});
  std::vector<std::int32_t> before;
  for (const ProgramOp& op : ops) {
    before = {program.add(op, before)};
  }
  program.finish();
  return program;
}

RankPrograms ranks(std::vector<std::vector<ProgramOp>> programs,
                   std::vector<std::int32_t> program_of_rank,
                   std::vector<std::vector<std::int32_t>> groups) {
  RankPrograms work;
  for (const auto& ops : programs) {
    work.programs.push_back(in_line(ops));
  }
  const auto count = static_cast<std::int32_t>(program_of_rank.size());
  work.program_of_rank = std::move(program_of_rank);
  work.families.emplace_back(GroupKind::kTp, std::move(groups), count);
  return work;
}

ReplayResult run(const RankPrograms& work, std::vector<std::int64_t>* sizes = nullptr,
                 ReplayOptions options = {}) {
  CommFormula formula;
  formula.collective = [&](const ProgramOp&, GroupKind, std::span<const std::int32_t> members) {
    if (sizes != nullptr) {
      sizes->push_back(std::ssize(members));
    }
    return Time::us(3);
  };
  formula.message = [](const ProgramOp&, std::int32_t, std::int32_t) { return Time::us(2); };
  return replay_by_formula(work, formula, options);
}

TEST(FormulaRuns, ACollectiveBeginsWithTheLast) {
  const ReplayResult result =
      run(ranks({{compute(1), all_reduce()}, {compute(4), all_reduce()}}, {0, 1}, {{0, 1}}));
  EXPECT_THAT(result.rank_end, ElementsAre(Time::us(7), Time::us(7)));
  EXPECT_EQ(result.first_rank[1].begin, Time::us(1));
  EXPECT_EQ(result.first_rank[1].moved, Time::us(4));
  EXPECT_EQ(result.transfers, 0);
}

TEST(FormulaRuns, OneOfEachProgramIsReplayed) {
  // Two groups of four ranks; the second program's ranks are late in both.
  std::vector<std::int64_t> sizes;
  const ReplayResult result = run(
      ranks({{compute(1), all_reduce(), all_reduce()}, {compute(4), all_reduce(), all_reduce()}},
            {0, 0, 1, 1, 0, 0, 1, 1}, {{0, 1, 2, 3}, {4, 5, 6, 7}}),
      &sizes);
  EXPECT_THAT(sizes, ElementsAre(4, 4));  // both collectives once, among all four
  EXPECT_EQ(result.rank_end, std::vector<Time>(8, Time::us(10)));
}

TEST(FormulaRuns, GroupsOfOneTakeNoTime) {
  EXPECT_EQ(run(ranks({{compute(1), all_reduce()}}, {0}, {{0}})).end, Time::us(1));
}

TEST(FormulaRuns, AMessageComesTwoLaterWhoeverIsFirst) {
  // Sent at 1, there at 3; the receiver comes at 5, or has waited since 0.5.
  for (const auto& [late, end] : {std::pair{5.0, 5.0}, {0.5, 3.0}}) {
    const ReplayResult result = run(ranks(
        {{compute(1), message(1, true)}, {compute(late), message(0, false)}}, {0, 1}, {{0}, {1}}));
    EXPECT_EQ(result.rank_end[0], Time::us(3));
    EXPECT_EQ(result.rank_end[1], Time::seconds(end * 1e-6));
  }
}

TEST(FormulaRuns, ARingOfEqualRanksIsOneThatSendsToItself) {
  ProgramOp send = message(1, true), receive = message(2, false);  // of three: to the next
  send.family = receive.family = 0;
  Program program({StreamOrder::kProgram, StreamOrder::kProgram});
  receive.stream = 1;
  const std::int32_t computed = program.add(compute(1), {});
  program.add(send, {{computed}});
  program.add(receive, {{computed}});
  program.finish();
  RankPrograms work;
  work.programs.push_back(std::move(program));
  work.program_of_rank = {0, 0, 0};
  work.families.emplace_back(GroupKind::kCp, std::vector<std::vector<std::int32_t>>{{0, 1, 2}}, 3);
  EXPECT_EQ(run(work).rank_end, std::vector<Time>(3, Time::us(3)));
}

TEST(FormulaRuns, WhoWaitsInVainIsNamed) {
  try {
    run(ranks({{all_reduce()}, {compute(1)}}, {0, 1}, {{0, 1}}));
    FAIL() << "it ended";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 0"));
    EXPECT_THAT(error.what(), HasSubstr("1"));
  }
  ProgramOp gather = all_reduce();
  gather.comm = CommType::kAllGather;
  try {
    run(ranks({{all_reduce()}, {gather}}, {0, 1}, {{0, 1}}));
    FAIL() << "it ended";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("allgather"));
  }
}

}  // namespace
}  // namespace lockstep::formula_runs_test
