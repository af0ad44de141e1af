// What the algorithms build, counted by hand. That they are right is the property test's proof.
#include <algorithm>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "simulator/collectives/check.h"
#include "simulator/collectives/choose.h"
#include "simulator/collectives/nvswitch.h"
#include "simulator/collectives/transfer_list.h"
#include "simulator/collectives/trees.h"
#include "tests/support/shapes.h"

namespace lockstep::algorithms_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::in_servers_of;

constexpr std::int64_t kMi = 1 << 20;

CollectiveRequest asks(CommType op, std::int64_t bytes, std::int32_t channels = 0) {
  CollectiveRequest request;
  request.op = op;
  request.bytes = Bytes(bytes);
  request.channels = channels;
  return request;
}

Schedule build(std::string_view name, const CollectiveRequest& request, const GroupShape& shape) {
  return build_schedule(algorithm_named(name, request.op), request, shape);
}

/// The most bytes that any place sends.
Bytes most_sent(const Schedule& s) {
  std::map<std::int32_t, Bytes> sent;
  for (const Slot& slot : s.slots) {
    for (std::int32_t k = 0; k < slot.count; ++k) {
      sent[slot.source] += s.data_bytes(slot, k);
    }
  }
  Bytes most;
  for (const auto& [place, bytes] : sent) {
    most = place < s.ranks ? std::max(most, bytes) : most;
  }
  return most;
}

// NCCL's picture of eight nodes: 0 over 4, 4 over 2 and 6, 2 over 1 and 3, 6 over 5 and 7.
TEST(Trees, BinaryTreeOfEight) {
  EXPECT_THAT(binary_tree(8), ElementsAre(-1, 2, 4, 2, 0, 6, 4, 6));
  EXPECT_THAT(complementary_tree(8), ElementsAre(1, 3, 1, 7, 5, 3, 5, -1));  // mirrored
}

// Of five: 4's lowest bit is 4, so 2 hangs on it, as 6 is missing. Shifted by one.
TEST(Trees, BinaryTreeOfFive) {
  EXPECT_THAT(binary_tree(5), ElementsAre(-1, 2, 4, 2, 0));
  EXPECT_THAT(complementary_tree(5), ElementsAre(1, -1, 3, 0, 3));
}

TEST(Trees, InnerNodesOfOneAreLeavesOfTheOther) {
  for (std::int32_t n = 2; n <= 64; n += 2) {
    const auto first = children_of(binary_tree(n)), second = children_of(complementary_tree(n));
    for (std::size_t node = 0; node < first.size(); ++node) {
      EXPECT_TRUE(first[node].size() < 2 || second[node].size() < 2) << n << ' ' << node;
      EXPECT_LE(first[node].size(), 2U);
    }
  }
}

// Two servers of four, channel 0 of 2: server 0 is the root, chain 0 1 2 3; its rank 1 has the link
// to server 1, which is entered on the same rail, at rank 5: chain 5 6 7 4.
TEST(Trees, ChainsStayOnTheirRail) {
  EXPECT_THAT(tree_parents(in_servers_of(4, 8), 0, 2, -1), ElementsAre(-1, 0, 1, 2, 7, 1, 5, 6));
}

// Servers 1 and 2 stand in a tree of their own (1 over 2) below root 0's server.
TEST(Trees, BroadcastPutsItsRootOnTop) {
  EXPECT_THAT(tree_parents(in_servers_of(1, 3), 0, 2, 0), ElementsAre(-1, 0, 1));
  EXPECT_THAT(tree_parents(in_servers_of(1, 3), 1, 2, 0), ElementsAre(-1, 2, 0));  // the mirror
}

// 2 servers of 8: 16 channels, 15 edges up and 15 down in each; 16 MiB / 16 = 1 MiB: two pieces.
TEST(Tree, SlotsAndPieces) {
  const Schedule s = build("tree", asks(CommType::kAllReduce, 16 * kMi), in_servers_of(8, 16));
  EXPECT_EQ(s.slots.size(), 16U * 30U);
  EXPECT_EQ(s.slots[0].count, 2);
  CollectiveRequest ll = asks(CommType::kAllReduce, 16 * kMi);
  ll.protocol = Protocol::kLl;  // pieces of 32 KiB
  EXPECT_EQ(build("tree", ll, in_servers_of(8, 16)).slots[0].count, 32);
}

// p = 4 of 6 ranks are active: two pairs before, 2 rounds of 4 halving, 2 doubling, two after.
TEST(RecursiveHalvingDoubling, SixRanks) {
  const Schedule s =
      build("recursive-halving-doubling", asks(CommType::kAllReduce, 4000), in_servers_of(8, 6));
  EXPECT_EQ(s.slots.size(), 2U + 8U + 8U + 2U);
  EXPECT_EQ(s.data_bytes(s.slots[0], 0), Bytes(4000));  // all of it, before
  EXPECT_EQ(s.data_bytes(s.slots[2], 0), Bytes(2000));
  EXPECT_EQ(s.data_bytes(s.slots[6], 0), Bytes(1000));
  // Eight ranks send 7/8 of the tensor twice.
  EXPECT_EQ(most_sent(build("recursive-halving-doubling", asks(CommType::kAllReduce, 8000),
                            in_servers_of(8, 8))),
            Bytes(14000));
}

// All-gather of 5: 1, 2 and 1 shards. All-to-all of 8: three rounds of 4 pieces.
TEST(Bruck, CeilLogRounds) {
  const Schedule gather = build("bruck", asks(CommType::kAllGather, 5000), in_servers_of(8, 5));
  EXPECT_EQ(gather.slots.size(), 15U);
  EXPECT_EQ(most_sent(gather), Bytes(4000));
  const Schedule all = build("bruck", asks(CommType::kAllToAll, 8000), in_servers_of(8, 8));
  EXPECT_EQ(all.slots.size(), 24U);
  EXPECT_EQ(most_sent(all), Bytes(12000));
}

// Far first: distance 4 carries one shard, 2 two, 1 four.
TEST(Pat, FarHopsAreSmall) {
  const Schedule s = build("pat", asks(CommType::kAllGather, 8000), in_servers_of(1, 8));
  EXPECT_EQ(s.slots[0].destination, 4);
  EXPECT_EQ(s.slots[0].run, 1);
  EXPECT_EQ(s.slots[8].destination, 2);
  EXPECT_EQ(s.slots[8].run, 2);
  EXPECT_EQ(s.slots[16].run, 4);
  const Schedule scatter = build("pat", asks(CommType::kReduceScatter, 8000), in_servers_of(1, 8));
  EXPECT_EQ(scatter.slots[0].run, 4);
}

// Four servers of two: group distances 0, 1, 3, 2 (0, 1, 1+2, 3+3 mod 4), shifts 0 and 1 each.
TEST(Pairwise, NcclsRounds) {
  const Schedule s = build("pairwise", asks(CommType::kAllToAll, 8000), in_servers_of(2, 8));
  std::vector<int> peers;
  for (const Slot& slot : s.slots) {
    if (slot.source == 0) {
      peers.push_back(slot.destination);
    }
  }
  EXPECT_THAT(peers, ElementsAre(1, 2, 3, 6, 7, 4, 5));
}

// The ninth send waits for the first and for the first receive.
TEST(Pairwise, EightAtOnce) {
  const Schedule s = build("pairwise", asks(CommType::kAllToAll, 12000), in_servers_of(1, 12));
  EXPECT_TRUE(s.waits(7 * 12).empty());
  ASSERT_EQ(s.waits(8 * 12).size(), 2U);
  for (const SlotWait& wait : s.waits(8 * 12)) {
    EXPECT_LT(wait.slot, 12);
    const Slot& other = s.slots[static_cast<std::size_t>(wait.slot)];
    EXPECT_TRUE(other.source == 0 || other.destination == 0);
  }
}

TEST(Uneven, AllToAllLeavesOutWhatIsEmpty) {
  CollectiveRequest request = asks(CommType::kAllToAll, 300);
  request.sizes = {Bytes(0), Bytes(100), Bytes(200),  // from rank 0
                   Bytes(5), Bytes(0),   Bytes(0),    //
                   Bytes(7), Bytes(8),   Bytes(9)};
  for (const char* name : {"direct", "pairwise", "bruck", "hierarchical"}) {
    const Schedule s = build(name, request, in_servers_of(2, 3));
    EXPECT_EQ(check_schedule(s), "") << name;
    EXPECT_EQ(s.chunk_size(2), Bytes(200));
  }
  EXPECT_EQ(build("direct", request, in_servers_of(2, 3)).slots.size(), 5U);
  request.sizes.pop_back();
  EXPECT_THROW(build("direct", request, in_servers_of(2, 3)), Error);
}

TEST(Uneven, RingAllGather) {
  CollectiveRequest request = asks(CommType::kAllGather, 600, 1);
  request.sizes = {Bytes(100), Bytes(200), Bytes(300)};
  const Schedule s = build("ring", request, in_servers_of(8, 3));
  EXPECT_EQ(check_schedule(s), "");
  EXPECT_EQ(most_sent(s), Bytes(500));
  try {
    build("pat", request, in_servers_of(8, 3));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("'pat' cannot give ranks different sizes"));
  }
}

// Each slice waits for its own: 4 ranks, 2 slices, 6 steps of 2 transfers.
TEST(Ring, Slices) {
  CollectiveRequest request = asks(CommType::kAllReduce, 8000, 1);
  request.slices = 2;
  const Schedule s = build("ring", request, in_servers_of(8, 4));
  EXPECT_EQ(s.slots[0].count, 12);
  EXPECT_EQ(s.data_bytes(s.slots[0], 0), Bytes(1000));
  EXPECT_THAT(s.waits(1), ElementsAre(SlotWait{0, 2}));
}

// 2 servers of 4: up to 3 heads, 2·3 rail steps each for reduce-scatter and all-gather, down.
TEST(Hierarchical, AllReduceCrossesTheRailsOnce) {
  const Schedule s = build("hierarchical", asks(CommType::kAllReduce, 8000), in_servers_of(4, 8));
  EXPECT_EQ(s.slots.size(), 24U + 8U + 8U + 24U);
  Bytes across;
  for (const Slot& slot : s.slots) {
    if (slot.source / 4 != slot.destination / 4) {
      EXPECT_EQ(slot.source % 4, slot.destination % 4);
      across += s.data_bytes(slot, 0) * slot.count;
    }
  }
  EXPECT_EQ(across, Bytes(2 * 8000));  // each server sends S/2 twice
}

// 8 heads: 8 up, 1 to the head, 1 back, 7 out. A rank sends S to add and S/8 to multicast.
TEST(Nvls, OneServer) {
  const Schedule s = build("nvls", asks(CommType::kAllReduce, 64 * kMi), in_servers_of(8, 8));
  EXPECT_EQ(s.slots.size(), 8U * 17U);
  EXPECT_EQ(most_sent(s), Bytes(72 * kMi));
  EXPECT_EQ(s.switches.size(), 1U);
  // 85 % of the links: 1 MiB of data takes as long as 1.1765 MiB.
  EXPECT_EQ(s.bytes(s.slots[0], 0).count(), (s.data_bytes(s.slots[0], 0).count() * 100 + 84) / 85);
}

// Its switches reach 74 % of the links, on 24 channels: 8 heads of them have pieces of 64 KiB from
// 96 MiB on.
TEST(Nvls, OnBlackwell) {
  CollectiveRequest request = asks(CommType::kAllReduce, 96 * kMi);
  request.arch = GpuArch::kBlackwell;
  const Schedule s = build("nvls", request, in_servers_of(8, 8));
  EXPECT_EQ(s.bytes(s.slots[0], 0).count(), (s.data_bytes(s.slots[0], 0).count() * 100 + 73) / 74);
  EXPECT_EQ(s.slots[0].count, 96 / 8 * 1024 / (24 * 64));
}

TEST(Nvls, SimaiSendsPieceAfterPiece) {
  CollectiveRequest request = asks(CommType::kAllReduce, 64 * kMi);
  request.flavour = CollectiveFlavour::kSimai;
  const Schedule s = build("nvls", request, in_servers_of(8, 16));
  EXPECT_EQ(check_schedule(s), "");
  for (std::int32_t slot = 0; slot < std::ssize(s.slots); ++slot) {
    EXPECT_THAT(s.waits(static_cast<std::size_t>(slot)), Contains(SlotWait{slot, 1}));
  }
}

// 128 KiB a channel from 64 · 16 · 8 · 128 KiB = 1 GiB on; 64 KiB from 64 MiB on; then 32 and 16.
TEST(Nvls, PiecesShrinkWithTheTensor) {
  const auto piece = [](std::int64_t mib) {
    return nvls_piece(Bytes(mib * kMi), 16, 8, Bytes(128 * 1024)).count() / 16 / 1024;
  };
  EXPECT_EQ(piece(1024), 128);
  EXPECT_EQ(piece(1023), 64);
  EXPECT_EQ(piece(64), 64);
  EXPECT_EQ(piece(63), 32);
  EXPECT_EQ(piece(8), 32);
  EXPECT_EQ(piece(7), 16);
}

// Between servers each head sends and gets its part once up and once down, in two halves.
TEST(NvlsTree, TwoServers) {
  const Schedule s = build("nvls-tree", asks(CommType::kAllReduce, 64 * kMi), in_servers_of(8, 16));
  Bytes across;
  for (const Slot& slot : s.slots) {
    if (slot.source < 16 && slot.destination < 16) {
      across += s.data_bytes(slot, 0) * slot.count;
    }
  }
  EXPECT_EQ(across, Bytes(2 * 64 * kMi));
}

TEST(Collnet, TheSwitchAddsBetweenServers) {
  const Schedule s = build("collnet-chain", asks(CommType::kAllReduce, kMi), in_servers_of(2, 8));
  ASSERT_EQ(s.switches.size(), 2U);  // one a rail
  EXPECT_EQ(s.switches[1], (SwitchPlace{1, 1, 0}));
  EXPECT_EQ(s.slots.size(), 2U * 2U * 8U);
}

TEST(Protocols, FlagsTravelToo) {
  CollectiveRequest request = asks(CommType::kAllReduce, 8 * 120, 1);
  const GroupShape shape = in_servers_of(8, 8);
  EXPECT_EQ(build("ring", request, shape).bytes({}, 0), Bytes(120));
  request.protocol = Protocol::kLl128;
  EXPECT_EQ(build("ring", request, shape).bytes({}, 0), Bytes(128));
  request.protocol = Protocol::kLl;
  EXPECT_EQ(build("ring", request, shape).bytes({}, 0), Bytes(240));
}

TEST(Protocols, LatencyGoesByWhatIsCrossed) {
  CollectiveRequest request = asks(CommType::kAllReduce, 8000, 1);
  const GroupShape shape = in_servers_of(2, 4);
  Schedule s = build("ring", request, shape);
  EXPECT_EQ(s.start_latency(s.slots[0], Time::us(6)), Time::us(6));
  request.hop_latency = HopLatency{Time::us(1), Time::us(3), Time::us(5)};
  s = build("ring", request, shape);
  for (const Slot& slot : s.slots) {
    EXPECT_EQ(s.start_latency(slot, Time::us(6)),
              slot.source / 2 == slot.destination / 2 ? Time::us(1) : Time::us(3));
  }
  s = build("collnet-chain", request, shape);  // to a leaf switch is over the network
  EXPECT_EQ(s.start_latency({.source = 0, .destination = 4}, Time()), Time::us(3));
  s = build("nvls", request, in_servers_of(4, 4));
  EXPECT_EQ(s.start_latency({.source = 0, .destination = 4}, Time()), Time::us(1));
}

}  // namespace
}  // namespace lockstep::algorithms_test
