// Experts with unequal loads: what an all-to-all carries to each rank, and back.
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "simulator/replay/replay.h"
#include "tests/support/fake_network.h"

namespace lockstep::uneven_all_to_all_test {
namespace {

/// Two ranks in one all-to-all of 2000 B a rank: 1000 B each way with even loads.
RankPrograms two_ranks(bool returns) {
  RankPrograms work;
  Program program({StreamOrder::kProgram});
  ProgramOp op;
  op.comm = CommType::kAllToAll;
  op.family = 0;
  op.bytes = Bytes(2000);
  op.returns = returns;
  op.microbatch = 3;
  program.add(op, {});
  program.finish();
  work.programs.push_back(std::move(program));
  work.program_of_rank = {0, 0};
  work.families.emplace_back(GroupKind::kEp, std::vector<std::vector<std::int32_t>>{{0, 1}}, 2);
  return work;
}

std::vector<Time> ends(bool returns, bool uneven) {
  Topology topology;
  topology.nodes.resize(2);
  const ScheduleSource direct = [](CommType op, Bytes bytes, const GroupShape& shape) {
    auto schedule = std::make_shared<Schedule>();
    schedule->op = op;
    schedule->ranks = shape.ranks;
    schedule->chunks = 4;
    schedule->chunk_bytes = bytes / 2;
    schedule->add({.source = 0, .destination = 1, .start = 1}, {});
    schedule->add({.source = 1, .destination = 0, .start = 2}, {});
    return std::shared_ptr<const Schedule>(schedule);
  };
  ReplayOptions options;
  options.send_latency = Time();
  if (uneven) {
    options.loads = [](const ProgramOp& op, std::int32_t group) {
      EXPECT_EQ(op.microbatch, 3);
      EXPECT_EQ(group, 0);
      return std::vector<double>{1.5, 0.5};
    };
  }
  testing::FakeNetwork network;
  return replay(two_ranks(returns), {NodeId(0), NodeId(1)}, topology, network, direct, options)
      .rank_end;
}

// The network takes 1 ns a byte and 1 us. Even: all is there at 2 us. Rank 0's experts get 1500 B,
// at 2.5 us, and rank 1's 500 B, at 1.5 us, when its own 1500 B are just gone. On the way back rank
// 0 sends the 1500 B.
TEST(UnevenAllToAll, CarriesMoreToLoadedExpertsAndBackFromThem) {
  EXPECT_EQ(ends(false, false), (std::vector<Time>{Time::us(2), Time::us(2)}));
  EXPECT_EQ(ends(false, true), (std::vector<Time>{Time::ns(2500), Time::ns(1500)}));
  EXPECT_EQ(ends(true, true), (std::vector<Time>{Time::ns(1500), Time::ns(2500)}));
}

}  // namespace
}  // namespace lockstep::uneven_all_to_all_test
