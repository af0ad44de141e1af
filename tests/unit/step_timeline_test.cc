#include "simulator/replay/step_timeline.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::step_timeline_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ProgramOp collective(std::int32_t family, Bytes bytes) {
  ProgramOp op;
  op.comm = CommType::kAllReduce;
  op.family = family;
  op.bytes = bytes;
  op.stream = 1;
  return op;
}

ProgramOp message(std::int32_t peer, bool send) {
  ProgramOp op;
  op.comm = CommType::kSendRecv;
  op.peer = peer;
  op.send = send;
  op.bytes = Bytes(7);
  op.stream = 2;
  return op;
}

/// Ranks 0 and 1: compute, two all-reduces, then 0 sends to 1.
RankPrograms two_ranks() {
  RankPrograms work;
  for (const bool first : {true, false}) {
    Program program(std::vector<StreamOrder>(3, StreamOrder::kProgram));
    ProgramOp compute;
    compute.microbatch = 4;
    program.add(compute, {});
    program.add(collective(0, Bytes(100)), {});
    program.add(collective(0, Bytes(200)), {});
    program.add(message(first ? 1 : 0, first), {});
    program.finish();
    work.programs.push_back(std::move(program));
  }
  work.program_of_rank = {0, 1};
  work.families.emplace_back(GroupKind::kTp, std::vector<std::vector<std::int32_t>>{{0, 1}}, 2);
  return work;
}

OpTiming from_to(int begin, int end) { return {Time(), Time::us(begin), Time::us(end)}; }

class StepTimelineTest : public ::testing::Test {
 protected:
  RankPrograms work_ = two_ranks();
  StepTimeline recorder_{
      work_, [](std::int32_t, std::int32_t op) { return "op " + std::to_string(op); },
      [&](std::int32_t rank, std::int32_t op) {
        const ProgramOp& what = work_.program(rank).ops()[static_cast<std::size_t>(op)];
        return "stream " + std::to_string(what.stream);
      }};
  static std::vector<std::pair<std::int64_t, std::int64_t>> flows(const Timeline& timeline) {
    std::vector<std::pair<std::int64_t, std::int64_t>> out;
    for (const TimelineFlow& flow : timeline.flows) {
      out.emplace_back(flow.from, flow.to);
    }
    return out;
  }
};

TEST_F(StepTimelineTest, StreamsAreTracksInOrder) {
  recorder_.record(1, 3, from_to(1, 2));
  recorder_.record(1, 0, from_to(0, 1));
  recorder_.record(0, 1, from_to(0, 1));
  const Timeline t = recorder_.take();
  std::vector<std::string> tracks;
  for (const TimelineTrack& track : t.tracks) {
    tracks.push_back(track.name + " " + std::to_string(track.parent) + " " +
                     std::to_string(track.number));
  }
  EXPECT_THAT(tracks, ElementsAre("rank 0 -1 0", "stream 1 0 0", "rank 1 -1 1", "stream 0 2 0",
                                  "stream 2 2 1"));
  EXPECT_EQ(t.events[0].track, 4);
  EXPECT_EQ(t.events[1].track, 3);
  EXPECT_EQ(t.events[2].track, 1);
}

TEST_F(StepTimelineTest, BytesAndMicrobatchAreArguments) {
  recorder_.record(0, 0, from_to(0, 1));
  recorder_.record(0, 2, from_to(1, 2));
  const Timeline t = recorder_.take();
  ASSERT_EQ(t.arguments.size(), 2U);
  EXPECT_THAT(t.keys, ElementsAre("microbatch", "bytes"));
  EXPECT_EQ(t.arguments[0].value, 4);
  EXPECT_EQ(t.events[1].first_argument, 1);
  EXPECT_EQ(t.events[1].arguments, 1);
  EXPECT_EQ(t.arguments[1].value, 200);
}

TEST_F(StepTimelineTest, ArrowsFromTheSenderAndFromTheLastIntoACollective) {
  recorder_.record(0, 1, from_to(0, 4));  // 0: enters the first all-reduce early
  recorder_.record(1, 1, from_to(3, 4));  // 1: and rank 1 late
  recorder_.record(1, 2, from_to(4, 6));  // 2: the second the other way round
  recorder_.record(0, 2, from_to(5, 6));  // 3
  recorder_.record(1, 3, from_to(7, 9));  // 4: receives
  recorder_.record(0, 3, from_to(6, 8));  // 5: sends, although it began first
  EXPECT_THAT(flows(recorder_.take()),
              ElementsAre(std::pair(5, 4), std::pair(1, 0), std::pair(3, 2)));
}

TEST_F(StepTimelineTest, NoArrowWithoutTheOtherEndAndNoBarWithoutTime) {
  recorder_.record(0, 3, from_to(6, 8));
  recorder_.record(1, 1, from_to(2, 2));
  const Timeline t = recorder_.take();
  EXPECT_EQ(t.events.size(), 1U);
  EXPECT_THAT(t.flows, IsEmpty());
}

}  // namespace
}  // namespace lockstep::step_timeline_test
