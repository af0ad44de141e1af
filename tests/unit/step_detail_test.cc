#include "simulator/replay/step_detail.h"

#include <string>

#include <gtest/gtest.h>

namespace lockstep::step_detail_test {
namespace {

ProgramOp forward(std::int32_t microbatch) {
  ProgramOp op;
  op.type = OpType::kForward;
  op.microbatch = microbatch;
  op.chunk = 0;
  return op;
}

ProgramOp all_reduce() {
  ProgramOp op;
  op.comm = CommType::kAllReduce;
  op.family = 0;
  op.stream = 1;
  op.bytes = Bytes(1000);
  op.type = OpType::kForward;
  op.microbatch = 0;
  op.chunk = 0;
  return op;
}

/// Four ranks run one program: two forward operations of microbatch 0, an all-reduce of pairs that
/// overlaps the second, one forward operation of microbatch 1.
struct Step {
  RankPrograms work;
  Step() {
    Program program({StreamOrder::kProgram, StreamOrder::kProgram});
    const std::int32_t first = program.add(forward(0), {});
    const std::int32_t comm = program.add(all_reduce(), {&first, 1});
    program.add(forward(0), {&first, 1});
    program.add(forward(1), {&comm, 1});
    program.finish();
    work.programs.push_back(std::move(program));
    work.program_of_rank = {0, 0, 0, 0};
    work.families.emplace_back(GroupKind::kTp,
                               std::vector<std::vector<std::int32_t>>{{0, 1}, {2, 3}}, 4);
  }
};

OpTiming us(int begin, int end) { return {Time::us(begin), Time::us(begin), Time::us(end)}; }

std::string op_name(std::int32_t, std::int32_t op) { return "op " + std::to_string(op % 3); }
std::string track_name(std::int32_t, std::int32_t op) { return op == 1 ? "tp" : "compute"; }

/// Ranks 0 and 1 alike; 2 and 3 alike, 5 us slower in the first operation.
StepRecorder recorded(const Step& step) {
  StepRecorder recorder(step.work, nullptr);
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    const int late = rank < 2 ? 0 : 5;
    recorder.record(rank, 0, us(0, 10 + late));
    recorder.record(rank, 1, us(10 + late, 20 + late));
    recorder.record(rank, 2, us(10 + late, 14 + late));
    recorder.record(rank, 3, us(20 + late, 30 + late));
  }
  return recorder;
}

// Ranks with equal times are one class. The first computes for 10 + 4 + 10 us, of the all-reduce's
// 10 us 4 are under compute and 6 are exposed.
TEST(StepDetail, FoldsRanksThatDoTheSame) {
  const Step step;
  const StepRecorder recorder = recorded(step);
  const StepDetail detail = recorder.detail(op_name, track_name, recorder.critical());
  ASSERT_EQ(detail.classes.size(), 2U);
  EXPECT_EQ(detail.all_classes, 2);
  EXPECT_EQ(detail.classes[0].first, 0);
  EXPECT_EQ(detail.classes[0].ranks, 2);
  EXPECT_EQ(detail.classes[0].stage, -1);
  EXPECT_EQ(detail.classes[1].first, 2);
  EXPECT_EQ(detail.classes[0].exposure.compute, Time::us(24));
  EXPECT_EQ(detail.classes[0].hidden, Time::us(4));
  EXPECT_EQ(detail.classes[0].exposure.by_group[static_cast<std::size_t>(GroupKind::kTp)],
            Time::us(6));
  EXPECT_EQ(detail.classes[1].end, Time::us(35));
  ASSERT_EQ(detail.tracks.size(), 4U);
  EXPECT_EQ(detail.tracks[1].name, "tp");
  EXPECT_EQ(detail.events.size(), 8U);
  EXPECT_FALSE(detail.merged);
  // "op 0" stands twice on each class's first rank: 10 + 10 us, and 15 + 10.
  EXPECT_EQ(detail.kinds[static_cast<std::size_t>(detail.sums[0].kind)].name, "op 0");
  EXPECT_EQ(detail.sums[0].count, 4);
  EXPECT_EQ(detail.sums[0].time, Time::us(45));
}

// The slow class decides: its first operation, the all-reduce, the last operation; 35 us.
TEST(StepDetail, DrawsTheCriticalPathOnClasses) {
  const Step step;
  const StepRecorder recorder = recorded(step);
  const StepDetail detail = recorder.detail(op_name, track_name, recorder.critical());
  ASSERT_EQ(detail.critical.size(), 3U);
  Time sum;
  for (const StepDetail::Piece& piece : detail.critical) {
    EXPECT_EQ(piece.rank_class, 1);
    sum += piece.end - piece.begin;
  }
  EXPECT_EQ(sum, Time::us(35));
}

// With room for three events, neighbours of a microbatch's pass are one: on the compute line the
// two operations of microbatch 0, not that of microbatch 1.
TEST(StepDetail, MergesNeighboursOfAPass) {
  const Step step;
  const StepRecorder recorder = recorded(step);
  const StepDetail detail = recorder.detail(op_name, track_name, std::nullopt, 3);
  EXPECT_TRUE(detail.merged);
  EXPECT_EQ(detail.classes.size(), 1U);
  EXPECT_EQ(detail.all_classes, 2);
  ASSERT_EQ(detail.events.size(), 3U);
  EXPECT_EQ(detail.events[0].merged, 2);
  EXPECT_EQ(detail.events[0].end, Time::us(14));
  EXPECT_EQ(detail.kinds[static_cast<std::size_t>(detail.events[0].kind)].name, "forward-compute");
  EXPECT_EQ(detail.events[1].microbatch, 1);
  EXPECT_TRUE(detail.critical.empty());
}

}  // namespace
}  // namespace lockstep::step_detail_test
