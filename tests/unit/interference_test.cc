// Computations run slower while collectives are under way beside them.
#include "simulator/replay/interference.h"

#include <cstdint>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "simulator/replay/replay.h"
#include "tests/support/fake_network.h"

namespace lockstep::interference_test {
namespace {

TEST(Interference, EachCollectiveTakesItsShareDownToTheLeast) {
  const Interference model{0.25};
  EXPECT_EQ(model.speed(0), 1);
  EXPECT_EQ(model.speed(2), 0.5);
  EXPECT_EQ(model.speed(9), Interference::kLeastSpeed);
  EXPECT_EQ(Interference{}.speed(3), 1);
}

// Measured: 4 blocks leave 0.9 of the speed, 16 leave 0.6.
TEST(Interference, MeasuredSpeedsRunStraightBetweenTheirPoints) {
  const Interference model{0, {{4, 0.9}, {16, 0.6}}};
  EXPECT_TRUE(model.any());
  EXPECT_EQ(model.speed(0), 1);
  EXPECT_DOUBLE_EQ(model.speed(1), 0.975);
  EXPECT_EQ(model.speed(4), 0.9);
  EXPECT_DOUBLE_EQ(model.speed(8), 0.8);
  EXPECT_EQ(model.speed(16), 0.6);
  EXPECT_EQ(model.speed(99), 0.6);
  EXPECT_FALSE(Interference{}.any());
}

// 10 us of work from 0 on. A collective from 4 to 8 takes half: 4 + 2 are done at 8, and 4 are
// left.
TEST(BesideCollectives, EndsMoveAsCollectivesComeAndGo) {
  const Interference model{0.5};
  BesideCollectives beside;
  std::vector<Time> ends;
  const auto moved = [&](std::int32_t op, Time end) {
    EXPECT_EQ(op, 7);
    ends.push_back(end);
  };
  EXPECT_EQ(beside.start(7, Time(), Time::us(10), Time(), model), Time::us(10));
  beside.collective(+1, Time::us(4), model, moved);
  beside.collective(-1, Time::us(8), model, moved);
  EXPECT_EQ(ends, (std::vector<Time>{Time::us(16), Time::us(12)}));
  // Not before the host has launched it, nor from before it begins.
  EXPECT_EQ(beside.start(8, Time::us(20), Time::us(1), Time::us(30), model), Time::us(30));
  beside.expect(8, 3);
  EXPECT_TRUE(beside.expects(8, 3));
  EXPECT_FALSE(beside.expects(8, 2));
  beside.end(8);
  EXPECT_FALSE(beside.expects(8, 3));
}

// Rank 0 enters an all-reduce at 0 and computes 10 us beside it; rank 1 enters after 4 us of work.
// The collective's kernel is there from 0 on, waiting for rank 1, and ends when the bytes have
// arrived: 4 us, then 2 us (1000 B at 1 ns each and 1 us of delay) = 6. So rank 0 has done 6 x 0.8
// at 6, and ends 10 + 0.2 x 6 = 11.2. Rank 1 has sent at 5 what it has, and computes nothing beside
// it.
TEST(Interference, ARankThatWaitsInACollectiveComputesSlowerToo) {
  RankPrograms work;
  for (const bool first : {true, false}) {
    Program program({StreamOrder::kProgram, StreamOrder::kProgram});
    ProgramOp compute, reduce;
    compute.compute = Time::us(first ? 10 : 4);
    reduce.comm = CommType::kAllGather;
    reduce.family = 0;
    reduce.stream = 1;
    reduce.bytes = Bytes(2000);
    if (first) {
      program.add(reduce, {});
      program.add(compute, {});
    } else {
      const std::int32_t before = program.add(compute, {});
      program.add(reduce, {&before, 1});
    }
    program.finish();
    work.programs.push_back(std::move(program));
  }
  work.program_of_rank = {0, 1};
  work.families.emplace_back(GroupKind::kDp, std::vector<std::vector<std::int32_t>>{{0, 1}}, 2);
  Topology topology;
  topology.nodes.resize(2);
  const ScheduleSource both_ways = [](CommType op, Bytes bytes, const GroupShape& shape) {
    auto schedule = std::make_shared<Schedule>();
    schedule->op = op;
    schedule->ranks = shape.ranks;
    schedule->chunks = 2;
    schedule->chunk_bytes = bytes / 2;
    schedule->add({.source = 0, .destination = 1}, {});
    schedule->add({.source = 1, .destination = 0}, {});
    return std::shared_ptr<const Schedule>(schedule);
  };
  const auto run = [&](const Interference& model) {
    testing::FakeNetwork network;
    ReplayOptions options;
    options.send_latency = Time();
    options.interference = model;
    options.channels = [](std::int32_t, const ProgramOp&) { return 8; };
    return replay(work, {NodeId(0), NodeId(1)}, topology, network, both_ways, options);
  };
  for (const double share : {0.0, 0.2}) {
    const ReplayResult result = run({share, {}});
    EXPECT_EQ(result.rank_end[0], share > 0 ? Time::ns(11'200) : Time::us(10));
    EXPECT_EQ(result.rank_end[1], Time::us(5));
    EXPECT_EQ(result.most_blocks, 0);
  }
  // 8 of 16 blocks, which leave 0.6.
  const ReplayResult measured = run({0, {{16, 0.6}}});
  EXPECT_EQ(measured.rank_end[0], Time::ns(11'200));
  EXPECT_EQ(measured.most_blocks, 8);
}

}  // namespace
}  // namespace lockstep::interference_test
