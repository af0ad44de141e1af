#include <map>
#include <set>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "simulator/collectives/building.h"
#include "simulator/collectives/check.h"
#include "simulator/collectives/choose.h"
#include "simulator/collectives/transfer_list.h"
#include "tests/support/shapes.h"

namespace lockstep::collectives_test {
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
    EXPECT_EQ(schedule.transfer_count(), static_cast<std::int64_t>(c.flows));
    for (const Slot& slot : schedule.slots) {
      ASSERT_EQ(schedule.bytes(slot, 0), Bytes(c.size));
    }
  }
}

// Three ranks on one channel, one byte a piece. Reduce-scatter: in step 0 place j sends the piece
// of place j-1, in step 1 that of place j-2; all-gather: first its own, then that of place j-1.
// Three ranks on one channel, one byte a piece. Reduce-scatter: in step 0 place j sends the piece
// of place j-1, in step 1 that of place j-2; all-gather: first its own, then that of place j-1.
TEST(Ring, AllReduceOfThreeWrittenOut) {
  const TransferList list = write_out(
      build(CommType::kAllReduce, 3, in_servers_of(8, 3), CollectiveFlavour::kDefault, 1));
  using Row = std::tuple<int, int, int, bool>;  // source, destination, chunk, reduce
  std::vector<Row> rows;
  for (std::size_t i = 0; i < list.transfers.size(); ++i) {
    const Transfer& t = list.transfers[i];
    ASSERT_EQ(list.chunks(i).size(), 1U);
    rows.emplace_back(t.source, t.destination, list.chunks(i)[0], t.reduce);
  }
  EXPECT_THAT(rows, ElementsAre(Row{0, 1, 2, true}, Row{1, 2, 0, true}, Row{2, 0, 1, true},  //
                                Row{0, 1, 1, true}, Row{1, 2, 2, true}, Row{2, 0, 0, true},  //
                                Row{0, 1, 0, false}, Row{1, 2, 1, false}, Row{2, 0, 2, false},
                                Row{0, 1, 2, false}, Row{1, 2, 0, false}, Row{2, 0, 1, false}));
  EXPECT_TRUE(list.dependencies(0).empty());
  EXPECT_THAT(list.dependencies(4), ElementsAre(1, 0));   // rank 1 passes chunk 2 on
  EXPECT_THAT(list.dependencies(6), ElementsAre(3, 5));   // rank 0 has chunk 0 complete
  EXPECT_THAT(list.dependencies(11), ElementsAre(8, 7));  // rank 2 passes chunk 1 on
}

TEST(Ring, OneSlotAConnection) {
  const Schedule s =
      build(CommType::kAllReduce, 1 << 20, in_servers_of(8, 16), CollectiveFlavour::kDefault);
  EXPECT_EQ(s.slots.size(), 16U * 8U);
  EXPECT_EQ(s.slots[0].count, 30);
  EXPECT_EQ(s.slots[0].reduces, 15);
}

TEST(Chain, BroadcastIsAPipeline) {
  // 2 MiB on one channel: four pieces of 512 KiB down 2 -> 0 -> 1 (root 2).
  CollectiveRequest request;
  request.op = CommType::kBroadcast;
  request.bytes = Bytes(2 << 20);
  request.root = 2;
  request.channels = 1;
  const Schedule s = choose_algorithm(CommType::kBroadcast, 3).build(request, in_servers_of(8, 3));
  ASSERT_EQ(s.slots.size(), 2U);
  EXPECT_EQ(s.slots[0].source, 2);
  EXPECT_EQ(s.slots[1].source, 0);
  EXPECT_EQ(s.slots[1].destination, 1);
  EXPECT_EQ(s.slots[1].count, 4);
  EXPECT_TRUE(s.waits(0).empty());
  EXPECT_THAT(s.waits(1), ElementsAre(SlotWait{0, 0}));
  const TransferList list = write_out(s);  // 0.0 | 0.1 1.0 | 0.2 1.1 | 0.3 1.2 | 1.3
  ASSERT_EQ(list.transfers.size(), 8U);
  EXPECT_TRUE(list.dependencies(0).empty());
  EXPECT_THAT(list.dependencies(1), ElementsAre(0));
  EXPECT_THAT(list.dependencies(7), ::testing::SizeIs(2));
}

TEST(SendRecv, TwoRanksAreOneSend) {
  const Schedule s = build(CommType::kSendRecv, 1000, in_servers_of(1, 2));
  ASSERT_EQ(s.slots.size(), 1U);
  EXPECT_EQ(s.slots[0].destination, 1);
  EXPECT_EQ(build(CommType::kSendRecv, 1000, in_servers_of(1, 3)).slots.size(), 3U);
}

TEST(Barrier, TakesLogarithmicRounds) {
  // 5 ranks: rounds of distance 1, 2, 4.
  EXPECT_EQ(build(CommType::kBarrier, 0, in_servers_of(8, 5)).slots.size(), 15U);
}

TEST(Build, TooManySlotsAreAnError) {
  // SimAI's ring, a slot a step: 2·65535·65536·8 = 6.87e10.
  const GroupShape shape = in_servers_of(8, 65536);
  try {
    build(CommType::kAllReduce, 1 << 30, shape);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("6.87e+10 connections"));
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
  EXPECT_EQ(cache.get(request, group_shape(here))->chunk_bytes, Bytes(262144));
  EXPECT_EQ(cache.size(), 4U);
}

TEST(Cache, DropsTheLeastRecentlyUsedOverBudget) {
  CollectiveRequest request;
  request.op = CommType::kAllGather;
  const GroupShape shape = in_servers_of(8, 8);  // 64 slots, about 3.5 kB
  ScheduleCache cache(8'000);
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

// The checker finds what is broken on purpose in a right schedule: slot j goes from rank j to the
// next one and carries four transfers, two of them reductions.
class Broken : public ::testing::Test {
 protected:
  Schedule schedule_ =
      build(CommType::kAllReduce, 3, in_servers_of(8, 3), CollectiveFlavour::kDefault, 1);
};

TEST_F(Broken, NotAtAll) { EXPECT_EQ(check_schedule(schedule_), ""); }

TEST_F(Broken, RankOutOfRange) {
  schedule_.slots[0].destination = 3;
  EXPECT_THAT(check_schedule(schedule_), HasSubstr("slot 0 goes from place 0 to place 3 of 3"));
}

TEST_F(Broken, WaitForASlotThatIsNotThere) {
  schedule_.wait[0].slot = 11;
  EXPECT_THAT(check_schedule(schedule_), HasSubstr("slot 0 waits for slot 11 of 3"));
}

TEST_F(Broken, WaitInACircle) {
  for (SlotWait& wait : schedule_.wait) {
    wait.lag = 0;
  }
  EXPECT_THAT(check_schedule(schedule_), HasSubstr("can never send transfer 0"));
}

TEST_F(Broken, WaitForWhatAnotherRankSees) {
  Schedule s = build(CommType::kAllReduce, 4, in_servers_of(8, 4), CollectiveFlavour::kDefault, 1);
  s.wait[0].slot = 2;  // from rank 2 to rank 3
  EXPECT_THAT(check_schedule(s), HasSubstr("cannot see"));
}

TEST_F(Broken, RunOfNoChunks) {
  schedule_.slots[1].run = 0;
  EXPECT_THAT(check_schedule(schedule_), HasSubstr("slot 1 has count 4, run 0"));
}

TEST_F(Broken, SizesOfSomeChunksOnly) {
  schedule_.chunk_sizes = {Bytes(1), Bytes(1)};
  EXPECT_THAT(check_schedule(schedule_), HasSubstr("3 chunks have 2 sizes"));
}

TEST_F(Broken, ContributionReducedTwice) {
  schedule_.slots[0].reduces = 3;
  EXPECT_THAT(check_schedule(schedule_), HasSubstr("already has"));
}

TEST_F(Broken, ContributionLost) {
  schedule_.slots[0].reduces = 1;
  EXPECT_THAT(check_schedule(schedule_), HasSubstr("ends without"));
}

TEST_F(Broken, LastStepMissing) {
  schedule_.slots[2].count = 3;
  EXPECT_THAT(check_schedule(schedule_), HasSubstr("rank 0 ends without"));
}

// Right in the order written, but rank 1 may pass chunk 2 on before it has arrived.
TEST_F(Broken, MissingDependency) {
  schedule_.wait[1].lag = 4;
  EXPECT_THAT(check_schedule(schedule_), HasSubstr("may touch chunk"));
}

TEST(BrokenBroadcast, SendsWhatItDoesNotHave) {
  Schedule s;
  s.op = CommType::kBroadcast;
  s.ranks = 3;
  s.chunks = 1;
  s.chunk_bytes = Bytes(1);
  s.add({.source = 1, .destination = 2}, {});
  s.add({.source = 0, .destination = 1}, {});
  EXPECT_THAT(check_schedule(s), HasSubstr("place 1 does not have"));
}

// Two servers of three: each channel changes servers twice, by way of the rank at which it enters
// the server that it leaves. So a step has 18 + 6 transfers.
TEST(Relays, HandOnBetweenServers) {
  const GroupShape shape = in_servers_of(3, 6);
  CollectiveRequest request{.op = CommType::kAllReduce,
                            .bytes = Bytes(1800),
                            .flavour = CollectiveFlavour::kSimai,
                            .relays = true};
  const Schedule schedule = choose_algorithm(request.op, 6).build(request, shape);
  EXPECT_EQ(check_schedule(schedule), "");
  EXPECT_EQ(schedule.transfer_count(), 10 * (18 + 6));
  EXPECT_EQ(schedule.relays.size(), 6U);
  // Channel 1 of server 0 goes 1, 2, 0, and leaves for rank 4 by way of 1.
  std::vector<std::pair<std::int32_t, std::int32_t>> ways;
  for (const Slot& slot : schedule.slots) {
    if (slot.channel == 1) {
      ways.emplace_back(slot.source, slot.destination);
    }
  }
  using Way = std::pair<std::int32_t, std::int32_t>;
  EXPECT_THAT(ways, ElementsAre(Way(1, 2), Way(2, 0), Way(0, 1), Way(1, 4), Way(4, 5), Way(5, 3),
                                Way(3, 4), Way(4, 1)));
  // In the next step rank 4 passes on what the relay has sent it.
  const auto next = static_cast<std::size_t>(8 + 4);
  ASSERT_EQ(schedule.slots[next].source, 4);
  EXPECT_EQ(schedule.waits(next)[0], (SlotWait{8 + 3, 1}));
  EXPECT_EQ(schedule.waits(8 + 3)[0], (SlotWait{8 + 2, 0}));

  request.op = CommType::kReduceScatter;
  EXPECT_EQ(choose_algorithm(request.op, 6).build(request, shape).transfer_count(), 5 * 24);
  request.op = CommType::kAllGather;  // SimAI's have none
  EXPECT_EQ(choose_algorithm(request.op, 6).build(request, shape).transfer_count(), 5 * 18);
  request.op = CommType::kAllReduce;
  request.flavour = CollectiveFlavour::kDefault;
  EXPECT_TRUE(choose_algorithm(request.op, 6).build(request, shape).relays.empty());
}

TEST(Relays, AreRightInGroupsOfEveryShape) {
  for (const CommType op : {CommType::kAllReduce, CommType::kReduceScatter}) {
    for (std::int32_t n = 2; n <= 9; ++n) {
      for (const std::int32_t per_server : {1, 2, 3, 8}) {
        for (const std::int32_t channels : {0, 3}) {
          const CollectiveRequest request{.op = op,
                                          .bytes = Bytes(7919),
                                          .channels = channels,
                                          .flavour = CollectiveFlavour::kSimai,
                                          .relays = true};
          const Schedule schedule =
              choose_algorithm(op, n).build(request, in_servers_of(per_server, n));
          EXPECT_EQ(check_schedule(schedule), "") << n << " by " << per_server;
          EXPECT_EQ(schedule.relays.empty(), per_server == 1 || per_server >= n);
        }
      }
    }
  }
}

TEST(Relays, HandOnOnlyWhatComesToThem) {
  Schedule s;  // from rank 0 to rank 1 by way of rank 2, whose own copy stays as it is
  s.op = CommType::kSendRecv;
  s.ranks = 3;
  s.chunks = 3;
  s.chunk_bytes = Bytes(1);
  s.add({.source = 0, .destination = 2, .start = 0}, {});
  s.add({.source = 2, .destination = 1, .start = 0}, {{{0, 0}}});
  s.add({.source = 1, .destination = 2, .start = 1}, {});
  s.add({.source = 2, .destination = 0, .start = 2}, {});
  s.relays = {1};
  EXPECT_EQ(check_schedule(s), "");
  s.relays = {3};
  EXPECT_THAT(check_schedule(s), HasSubstr("relay 3 is not a slot"));
  s.relays = {1};
  s.slots[0].destination = 1;
  EXPECT_THAT(check_schedule(s), HasSubstr("relay 1 hands on what comes to another place"));
}

TEST(Reduction, TwoMayArriveInEitherOrder) {
  Schedule s;  // ranks 1 and 2 both add into rank 0
  s.op = CommType::kReduce;
  s.ranks = 3;
  s.chunks = 1;
  s.chunk_bytes = Bytes(1);
  s.add({.source = 1, .destination = 0, .reduces = 1}, {});
  s.add({.source = 2, .destination = 0, .reduces = 1}, {});
  EXPECT_EQ(check_schedule(s), "");
  s.slots[1].reduces = 0;  // now the second may be overwritten or not
  EXPECT_NE(check_schedule(s), "");
}

TEST(Switches, ReduceAndMulticast) {
  Schedule s;  // both ranks add into the switch, which sends the sum to both
  s.op = CommType::kAllReduce;
  s.ranks = 2;
  s.chunks = 1;
  s.chunk_bytes = Bytes(1);
  s.switches.push_back({0, 1, 0});
  s.add({.source = 0, .destination = 2, .reduces = 1}, {});
  s.add({.source = 1, .destination = 2, .reduces = 1}, {});
  s.add({.source = 2, .destination = 0}, {{{0, 0}, {1, 0}}});
  s.add({.source = 2, .destination = 1}, {{{0, 0}, {1, 0}}});
  EXPECT_EQ(check_schedule(s), "");
  s.wait[0] = {1, 0};  // the copy to rank 0 may leave before rank 0's own part is in it
  EXPECT_THAT(check_schedule(s), HasSubstr("may touch chunk 0"));
}

TEST(BrokenBarrier, OneRoundTooFew) {
  Schedule s = build(CommType::kBarrier, 0, in_servers_of(8, 5));
  EXPECT_EQ(check_schedule(s), "");
  s.slots.resize(10);
  s.wait_begin.resize(11);
  s.wait.resize(static_cast<std::size_t>(s.wait_begin.back()));
  EXPECT_THAT(check_schedule(s), HasSubstr("may leave the barrier"));
}

// Pieces are counted in 32 bits: what would be more of them is cut into larger ones.
TEST(Pieces, AreAtMostAMillion) {
  EXPECT_EQ(piece_count(Bytes(0), Bytes(8)), 1);
  EXPECT_EQ(piece_count(Bytes(8), Bytes(8)), 1);
  EXPECT_EQ(piece_count(Bytes(9), Bytes(8)), 2);
  EXPECT_EQ(piece_count(Bytes(std::int64_t{1} << 52), Bytes(1 << 19)), kMostPieces);
  EXPECT_EQ(piece_count(Bytes(INT64_MAX), Bytes(8)), kMostPieces);
}

// 24 channels of NVLS or trees: 2^52 bytes had 2^33 / 24 pieces a channel and chunk ids beyond 32
// bits.
TEST(Pieces, OfSizesBeyondAnyMemoryMakeASchedule) {
  const GroupShape shape = in_servers_of(8, 16);
  for (const CollectiveAlgorithm* algorithm : collective_algorithms()) {
    for (const CommType op : algorithm->ops) {
      CollectiveRequest request{.op = op, .bytes = Bytes(std::int64_t{1} << 52)};
      const Schedule schedule = build_schedule(*algorithm, request, shape);
      EXPECT_GT(schedule.chunks, 0) << algorithm->name;
      EXPECT_GE(schedule.chunk_bytes, Bytes(0)) << algorithm->name;
      for (const Slot& slot : schedule.slots) {
        ASSERT_GE(slot.count, 0) << algorithm->name;
      }
    }
  }
}

TEST(Shards, OfTooManyPairsAreRefused) {
  Schedule schedule;
  schedule.ranks = 46'341;  // squared: 2^31 + 4,633
  CollectiveRequest request{.op = CommType::kAllToAll, .bytes = Bytes(1 << 30)};
  EXPECT_THROW(set_shards(schedule, request), Error);
  request.op = CommType::kAllGather;
  set_shards(schedule, request);
  EXPECT_EQ(schedule.chunks, 46'341);
}

}  // namespace
}  // namespace lockstep::collectives_test
