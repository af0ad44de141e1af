#include <map>
#include <set>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "simulator/collectives/check.h"
#include "simulator/collectives/choose.h"
#include "tests/support/shapes.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::in_servers_of;

Schedule build(CommType op, std::int64_t bytes, const GroupShape& shape,
               CollectiveFlavour flavour = CollectiveFlavour::kSimai, std::int32_t channels = 0) {
  CollectiveRequest request;
  request.op = op;
  request.bytes = Bytes(bytes);
  request.flavour = flavour;
  request.channels = channels;
  return choose_algorithm(op, shape.ranks).build(request, shape);
}

// Numbers of flows: all-reduce 2(n-1)·n·C, all-gather and reduce-scatter (n-1)·n·C, all-to-all
// n(n-1); sizes S/n/C and S/n. C is the number of ranks a server.
TEST(FlowCounts, AreSimais) {
  struct Case {
    CommType op;
    std::int32_t ranks, per_server;
    std::int64_t bytes;
    std::size_t flows;
    std::int64_t size;
  };
  const Case cases[] = {
      {CommType::kAllReduce, 8, 8, 16 << 20, 896, 262144},  // 2·7·8·8; 2^24/8/8
      {CommType::kAllReduce, 16, 8, 16 << 20, 3840, 131072},
      {CommType::kAllReduce, 32, 8, 16 << 20, 15872, 65536},
      {CommType::kAllReduce, 64, 8, 16 << 20, 64512, 32768},
      {CommType::kAllReduce, 128, 8, 16 << 20, 260096, 16384},
      {CommType::kAllGather, 8, 8, 20971520, 448, 327680},  // 7·8·8
      {CommType::kReduceScatter, 8, 8, 20971520, 448, 327680},
      {CommType::kAllGather, 2, 1, 157286400, 2, 78643200},  // one channel
      {CommType::kAllReduce, 3, 3, 100, 36, 11},             // 2·2·3·3; 100/3/3, 1 byte dropped
      {CommType::kAllToAll, 16, 8, 1 << 20, 240, 65536},
      {CommType::kAllToAll, 3, 8, 100, 6, 33},
  };
  for (const Case& c : cases) {
    const Schedule schedule = build(c.op, c.bytes, in_servers_of(c.per_server, c.ranks));
    EXPECT_EQ(schedule.transfers.size(), c.flows);
    for (const Transfer& transfer : schedule.transfers) {
      ASSERT_EQ(transfer.bytes, Bytes(c.size));
    }
  }
}

// Three ranks on one channel, one byte a piece. Reduce-scatter: in step 0 place j sends the piece
// of place j-1, in step 1 that of place j-2; all-gather: first its own, then that of place j-1.
TEST(Ring, AllReduceOfThreeWrittenOut) {
  const Schedule s =
      build(CommType::kAllReduce, 3, in_servers_of(8, 3), CollectiveFlavour::kDefault, 1);
  using Row = std::tuple<int, int, int, bool>;  // source, destination, chunk, reduce
  std::vector<Row> rows;
  for (const Transfer& t : s.transfers) {
    rows.emplace_back(t.source, t.destination, t.chunk, t.reduce);
  }
  EXPECT_THAT(rows, ElementsAre(Row{0, 1, 2, true}, Row{1, 2, 0, true}, Row{2, 0, 1, true},  //
                                Row{0, 1, 1, true}, Row{1, 2, 2, true}, Row{2, 0, 0, true},  //
                                Row{0, 1, 0, false}, Row{1, 2, 1, false}, Row{2, 0, 2, false},
                                Row{0, 1, 2, false}, Row{1, 2, 0, false}, Row{2, 0, 1, false}));
  EXPECT_TRUE(s.dependencies(0).empty());
  EXPECT_THAT(s.dependencies(4), ElementsAre(0));   // rank 1 passes chunk 2 on
  EXPECT_THAT(s.dependencies(6), ElementsAre(5));   // rank 0 has chunk 0 complete
  EXPECT_THAT(s.dependencies(11), ElementsAre(7));  // rank 2 passes chunk 1 on
}

TEST(Chain, BroadcastIsAPipeline) {
  // 2 MiB on one channel: four pieces of 512 KiB down 2 -> 0 -> 1 (root 2).
  CollectiveRequest request;
  request.op = CommType::kBroadcast;
  request.bytes = Bytes(2 << 20);
  request.root = 2;
  request.channels = 1;
  const Schedule s = choose_algorithm(CommType::kBroadcast, 3).build(request, in_servers_of(8, 3));
  ASSERT_EQ(s.transfers.size(), 8U);
  EXPECT_EQ(s.transfers[0].source, 2);
  EXPECT_EQ(s.transfers[1].source, 0);
  EXPECT_EQ(s.transfers[1].destination, 1);
  EXPECT_TRUE(s.dependencies(0).empty());
  EXPECT_THAT(s.dependencies(1), ElementsAre(0));
  EXPECT_THAT(s.dependencies(2), ElementsAre(0));     // piece 1 leaves after piece 0
  EXPECT_THAT(s.dependencies(3), ElementsAre(1, 2));  // and goes on when it has come
}

TEST(SendRecv, TwoRanksAreOneSend) {
  const Schedule s = build(CommType::kSendRecv, 1000, in_servers_of(1, 2));
  ASSERT_EQ(s.transfers.size(), 1U);
  EXPECT_EQ(s.transfers[0].destination, 1);
  EXPECT_EQ(build(CommType::kSendRecv, 1000, in_servers_of(1, 3)).transfers.size(), 3U);
}

TEST(Barrier, TakesLogarithmicRounds) {
  // 5 ranks: rounds of distance 1, 2, 4.
  EXPECT_EQ(build(CommType::kBarrier, 0, in_servers_of(8, 5)).transfers.size(), 15U);
}

TEST(Build, TooManyTransfersAreAnError) {
  // 2·65535·65536·8 = 6.87e10.
  const GroupShape shape = in_servers_of(8, 65536);
  try {
    build(CommType::kAllReduce, 1 << 30, shape);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("6.87e+10 transfers"));
  }
  EXPECT_THROW(build(CommType::kAllToAll, 1 << 30, shape), Error);
  EXPECT_THROW(build(CommType::kAllReduce, 1 << 30, in_servers_of(65536, 65536)), Error);
  EXPECT_THROW(build(CommType::kReduce, 1 << 30, in_servers_of(65536, 65536)), Error);
}

TEST(Choose, NamesAreChecked) {
  EXPECT_EQ(algorithm_named("ring", CommType::kAllGather).name, "ring");
  try {
    algorithm_named("direct", CommType::kAllReduce);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("'direct' for allreduce"));
    EXPECT_THAT(error.what(), HasSubstr("ring"));
  }
}

TEST(Choose, EveryOperationHasAnAlgorithm) {
  for (int op = 1; op <= static_cast<int>(CommType::kBarrier); ++op) {
    EXPECT_NO_THROW(choose_algorithm(static_cast<CommType>(op), 2));
    EXPECT_NO_THROW(choose_algorithm(static_cast<CommType>(op), 7));
  }
}

TEST(Cache, GroupsOfEqualShapeShareOneSchedule) {
  ScheduleCache cache;
  CollectiveRequest request;
  request.op = CommType::kAllReduce;
  request.bytes = Bytes(1 << 20);
  const std::int32_t here[] = {0, 0, 1, 1}, there[] = {8, 8, 5, 5}, other[] = {0, 1, 0, 1};
  const auto first = cache.get(request, group_shape(here));
  EXPECT_EQ(cache.get(request, group_shape(there)), first);
  EXPECT_NE(cache.get(request, group_shape(other)), first);
  request.bytes = Bytes(2 << 20);
  EXPECT_NE(cache.get(request, group_shape(here)), first);
  request.flavour = CollectiveFlavour::kSimai;
  EXPECT_EQ(cache.get(request, group_shape(here))->transfers[0].bytes, Bytes(262144));
  EXPECT_EQ(cache.size(), 4U);
}

TEST(Cache, DropsTheLeastRecentlyUsedOverBudget) {
  CollectiveRequest request;
  request.op = CommType::kAllGather;
  const GroupShape shape = in_servers_of(8, 8);  // 448 transfers, about 18 kB
  ScheduleCache cache(40'000);
  const auto get = [&](std::int64_t bytes) {
    request.bytes = Bytes(bytes);
    return cache.get(request, shape);
  };
  const auto one = get(1), two = get(2);
  EXPECT_EQ(get(1), one);
  get(3);  // drops 2, asked for longest ago
  EXPECT_EQ(cache.size(), 2U);
  EXPECT_EQ(get(1), one);
  EXPECT_NE(get(2), two);
  EXPECT_EQ(*get(2), *two);
}

// The checker finds what is broken on purpose in a right schedule.
class Broken : public ::testing::Test {
 protected:
  Schedule schedule_ =
      build(CommType::kAllReduce, 3, in_servers_of(8, 3), CollectiveFlavour::kDefault, 1);
};

TEST_F(Broken, NotAtAll) { EXPECT_EQ(check_schedule(schedule_), ""); }

TEST_F(Broken, RankOutOfRange) {
  schedule_.transfers[0].destination = 3;
  EXPECT_THAT(check_schedule(schedule_), HasSubstr("transfer 0 goes from rank 0 to rank 3 of 3"));
}

TEST_F(Broken, DependencyForward) {
  schedule_.dependency[0] = 11;
  EXPECT_THAT(check_schedule(schedule_), HasSubstr("does not come before"));
}

TEST_F(Broken, DependencyOnWhatAnotherRankSees) {
  schedule_.dependency[1] = 2;  // transfer 4 (from rank 1) waits for rank 2's to rank 0
  EXPECT_THAT(check_schedule(schedule_), HasSubstr("cannot see"));
}

TEST_F(Broken, SizeOfAChunkDiffers) {
  schedule_.transfers[4].bytes = Bytes(2);
  EXPECT_THAT(check_schedule(schedule_), HasSubstr("another size"));
}

TEST_F(Broken, ContributionReducedTwice) {
  schedule_.transfers[6].reduce = true;
  EXPECT_THAT(check_schedule(schedule_), HasSubstr("already has"));
}

TEST_F(Broken, ContributionLost) {
  schedule_.transfers[3].reduce = false;
  EXPECT_THAT(check_schedule(schedule_), HasSubstr("ends without"));
}

TEST_F(Broken, LastStepMissing) {
  schedule_.transfers.pop_back();
  schedule_.dependency.pop_back();
  schedule_.dependency_begin.pop_back();
  EXPECT_THAT(check_schedule(schedule_), HasSubstr("rank 0 ends without"));
}

// Right in index order, but rank 1 may pass chunk 2 on before it has arrived.
TEST_F(Broken, MissingDependency) {
  schedule_.dependency[1] = 1;  // transfer 4 waits for rank 1's own first send instead
  EXPECT_THAT(check_schedule(schedule_), HasSubstr("transfers 0 and 4 may touch chunk 2"));
}

TEST(BrokenBroadcast, SendsWhatItDoesNotHave) {
  Schedule s;
  s.op = CommType::kBroadcast;
  s.ranks = 3;
  s.chunks = 1;
  s.add({1, 2, 0, 0, Bytes(1), false}, {});
  s.add({0, 1, 0, 0, Bytes(1), false}, {});
  EXPECT_THAT(check_schedule(s), HasSubstr("rank 1 does not have"));
}

TEST(Reduction, TwoMayArriveInEitherOrder) {
  Schedule s;  // ranks 1 and 2 both add into rank 0
  s.op = CommType::kReduce;
  s.ranks = 3;
  s.chunks = 1;
  s.add({1, 0, 0, 0, Bytes(1), true}, {});
  s.add({2, 0, 0, 0, Bytes(1), true}, {});
  EXPECT_EQ(check_schedule(s), "");
  s.transfers[1].reduce = false;  // now the second may be overwritten or not
  EXPECT_NE(check_schedule(s), "");
}

TEST(BrokenBarrier, OneRoundTooFew) {
  Schedule s = build(CommType::kBarrier, 0, in_servers_of(8, 5));
  EXPECT_EQ(check_schedule(s), "");
  s.transfers.resize(10);
  s.dependency_begin.resize(11);
  s.dependency.resize(static_cast<std::size_t>(s.dependency_begin.back()));
  EXPECT_THAT(check_schedule(s), HasSubstr("may leave the barrier"));
}

}  // namespace
}  // namespace lockstep
