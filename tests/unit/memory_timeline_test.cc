#include "simulator/replay/memory_timeline.h"

#include <vector>

#include <gtest/gtest.h>

namespace lockstep::memory_timeline_test {
namespace {

ProgramOp pass(OpType type, std::int32_t microbatch, std::int16_t chunk = 0) {
  ProgramOp op;
  op.type = type;
  op.microbatch = microbatch;
  op.chunk = chunk;
  return op;
}

OpTiming from_to(int begin, int end) { return {Time(), Time::us(begin), Time::us(end)}; }

MemoryTimeline timeline_of(const std::vector<ProgramOp>& ops, const std::vector<OpTiming>& timing,
                           const RankMemory& memory) {
  Program program({StreamOrder::kProgram});
  for (const ProgramOp& op : ops) {
    program.add(op, {});
  }
  program.finish();
  return memory_timeline(program, timing, memory);
}

std::vector<std::pair<Time, Bytes>> points(const MemoryTimeline& timeline) {
  std::vector<std::pair<Time, Bytes>> all;
  for (const MemoryPoint& point : timeline.points) {
    all.emplace_back(point.when, point.held);
  }
  return all;
}

// Two forward passes of two operations each, then their backward passes, which need 5 B besides:
// 100, 110 from 0, 120 from 10, 125 from 20 (backward 1), 115 from 30, 100 from 40.
TEST(MemoryTimeline, ActivationsStayFromForwardToTheEndOfBackward) {
  const MemoryTimeline timeline = timeline_of(
      {pass(OpType::kForward, 0), pass(OpType::kForward, 0), pass(OpType::kForward, 1),
       pass(OpType::kBackward, 1), pass(OpType::kBackward, 0), pass(OpType::kOptimizer, -1)},
      {from_to(0, 4), from_to(4, 10), from_to(10, 20), from_to(20, 30), from_to(30, 40),
       from_to(40, 50)},
      {Bytes(100), {Bytes(10)}, Bytes(), Bytes(5)});
  EXPECT_EQ(points(timeline), (std::vector<std::pair<Time, Bytes>>{{Time(), Bytes(110)},
                                                                   {Time::us(10), Bytes(120)},
                                                                   {Time::us(20), Bytes(125)},
                                                                   {Time::us(30), Bytes(115)},
                                                                   {Time::us(40), Bytes(100)}}));
  EXPECT_EQ(timeline.peak, Bytes(125));
  EXPECT_EQ(timeline.peak_at, Time::us(20));
}

// A backward pass that ends when a forward pass begins gives its memory back first; where the
// weights' gradients are a pass of their own, at its end.
TEST(MemoryTimeline, SplitBackwardPassesKeepUntilTheWeights) {
  const std::vector<ProgramOp> ops{pass(OpType::kForward, 0), pass(OpType::kBackward, 0),
                                   pass(OpType::kForward, 1), pass(OpType::kWeightGradient, 0)};
  const std::vector<OpTiming> timing{from_to(0, 10), from_to(10, 20), from_to(20, 30),
                                     from_to(30, 40)};
  const RankMemory memory{Bytes(), {Bytes(10)}, Bytes(), Bytes()};
  EXPECT_EQ(timeline_of(ops, timing, memory).peak, Bytes(20));
  EXPECT_EQ(timeline_of({ops[0], ops[1], ops[2]}, {timing[0], timing[1], timing[2]}, memory).peak,
            Bytes(10));
  // What the input's part computes again waits for the weights' part, too.
  EXPECT_EQ(timeline_of(ops, timing, {Bytes(), {Bytes(10)}, Bytes(), Bytes(), {Bytes(7)}}).peak,
            Bytes(27));
}

TEST(MemoryTimeline, ChunksKeepWhatIsTheirs) {
  const MemoryTimeline timeline =
      timeline_of({pass(OpType::kForward, 0, 0), pass(OpType::kForward, 0, 1)},
                  {from_to(0, 10), from_to(10, 20)}, {Bytes(), {Bytes(3), Bytes(4)}, {}, {}});
  EXPECT_EQ(timeline.peak, Bytes(7));
  EXPECT_EQ(timeline.peak_at, Time::us(10));
}

}  // namespace
}  // namespace lockstep::memory_timeline_test
