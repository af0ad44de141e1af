#include "simulator/network/analytic/collective_time.h"

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"

namespace lockstep::collective_time_test {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr std::int64_t kMiB = std::int64_t{1} << 20;

/// Round figures: NVLink 100, NICs 10 GB/s, servers of 8 with 8 NICs.
AnalyticOptions options(Flavour flavour) {
  AnalyticOptions o;
  o.flavour = flavour;
  o.nvlink = parse_bandwidth("100GBps");
  o.nic = parse_bandwidth("10GBps");
  return o;
}

Time simai(CommType op, GroupKind group, std::int64_t ranks, std::int64_t bytes, GroupDegrees d,
           const AnalyticOptions& o = options(Flavour::kSimai)) {
  return collective_time({op, group, ranks, Bytes(bytes)}, d, o);
}

Time ours(CommType op, GroupKind group, std::int64_t ranks, std::int64_t bytes, GroupDegrees d,
          const AnalyticOptions& o = options(Flavour::kDefault)) {
  return collective_time({op, group, ranks, Bytes(bytes)}, d, o);
}

TEST(SimaiCollective, TpAllReduceInsideAServerCountsInGiB) {
  // 1 GiB / (100 "GB/s" taken for GiB/s) * 2 * 7/8 = 17.5 ms.
  EXPECT_EQ(simai(CommType::kAllReduce, GroupKind::kTp, 8, kGiB, {64, 8}), Time::us(17'500));
}

TEST(SimaiCollective, TpOverServers) {
  // TP 16: 2 servers, B x = 80 < V: 1 / 80 * 2 * 15/16 s = 23.4375 ms.
  EXPECT_EQ(simai(CommType::kAllReduce, GroupKind::kTp, 16, kGiB, {64, 16}), Time::ns(23'437'500));
  // TP 12 is taken for one server: 1 / 100 * 2 * 11/12 s = 18.333333 ms.
  EXPECT_EQ(simai(CommType::kAllReduce, GroupKind::kTp, 12, kGiB, {64, 12}), Time::ns(18'333'333));
}

TEST(SimaiCollective, TpAllGatherIsLessEfficient) {
  // 16 GiB on one server has efficiency 1: 16 / 100 * 7/8 s = 140 ms. 16 MiB has .45 / .81.
  EXPECT_EQ(simai(CommType::kAllGather, GroupKind::kTp, 8, 16 * kGiB, {64, 8}), Time::us(140'000));
  // 2^-6 / (100 * .45 / .81) * 7/8 s = 246.09375 us, cut to whole ns.
  EXPECT_EQ(simai(CommType::kReduceScatter, GroupKind::kTp, 8, 16 * kMiB, {64, 8}),
            Time::ns(246'093));
}

TEST(SimaiCollective, SmallMessagesByRanksAlone) {
  for (const auto& [ranks, us] : {std::pair{2, 10}, {4, 12}, {8, 15}, {16, 66}, {128, 320}}) {
    EXPECT_EQ(simai(CommType::kAllGather, GroupKind::kDp, ranks, kMiB - 1, {64, 8}), Time::us(us));
    EXPECT_EQ(simai(CommType::kAllReduce, GroupKind::kTp, ranks, 2, {64, 8}), Time::us(us));
  }
  EXPECT_EQ(simai(CommType::kAllReduce, GroupKind::kTp, 3, 1000, {64, 8}), Time());
  EXPECT_EQ(simai(CommType::kAllReduce, GroupKind::kTp, 256, 1000, {64, 8}), Time());
  EXPECT_EQ(simai(CommType::kAllReduce, GroupKind::kTp, 8, 0, {64, 8}), Time());
}

TEST(SimaiCollective, DataParallelGroupsShareTheNics) {
  // TP 2: each of the 2 DP groups of a server has 4 NICs: 1 / 40 * 2 * 3/4 s.
  EXPECT_EQ(simai(CommType::kAllReduce, GroupKind::kDp, 4, kGiB, {8, 2}), Time::us(37'500));
  // TP 16: one GPU of a server, one NIC: 1 / 10 * 2 * 3/4 s.
  EXPECT_EQ(simai(CommType::kAllReduce, GroupKind::kDp, 4, kGiB, {64, 16}), Time::us(150'000));
  // DP_EP with TP 2, EP 2: 2 NICs: 1 / 20 * 1/2 s.
  EXPECT_EQ(simai(CommType::kAllGather, GroupKind::kDpEp, 2, kGiB, {64, 2, 2}), Time::us(25'000));
  EXPECT_EQ(simai(CommType::kAllGather, GroupKind::kDpEp, 2, kGiB, {64, 8, 2}), Time::us(50'000));
}

TEST(SimaiCollective, ExpertAllToAll) {
  // TP 1, EP 8: one server, 16 GiB: 16 / 100 * 7/8 s.
  EXPECT_EQ(simai(CommType::kAllToAll, GroupKind::kEp, 8, 16 * kGiB, {64, 1, 8}),
            Time::us(140'000));
  // TP 2, EP 8: 2 servers, 4 GPUs and 4 NICs each: busbw = 10 * 4 / 4 * 7 / 4 = 17.5;
  // 16 GiB on 2 servers has efficiency 1: 16 / 17.5 * 7/8 s = 800 ms.
  EXPECT_EQ(simai(CommType::kAllToAll, GroupKind::kEp, 8, 16 * kGiB, {64, 2, 8}),
            Time::us(800'000));
  // TP 8, EP 2: "Multi 16", 16 MiB: .86 / .96; busbw 10 * 1 / 1 * 1 / 1.
  EXPECT_EQ(simai(CommType::kAllToAll, GroupKind::kEp, 2, 16 * kMiB, {64, 8, 2}),
            Time::ns(872'093));  // 2^-6 / (10 * .86 / .96) / 2 s = 872.093 us
}

TEST(SimaiCollective, GroupsOfOneAndUnknownOperationsTakeNoTime) {
  EXPECT_EQ(simai(CommType::kAllReduce, GroupKind::kDp, 1, kGiB, {64, 8}), Time());
  EXPECT_EQ(simai(CommType::kAllReduce, GroupKind::kTp, 1, kGiB, {64, 1}), Time());
  EXPECT_EQ(simai(CommType::kBroadcast, GroupKind::kTp, 8, kGiB, {64, 8}), Time());
  EXPECT_EQ(simai(CommType::kNone, GroupKind::kTp, 8, kGiB, {64, 8}), Time());
}

TEST(SimaiCollective, FewerNicsThanGroupsIsDividedByAnErrorCode) {
  AnalyticOptions o = options(Flavour::kSimai);
  o.nics_per_server = 4;
  EXPECT_EQ(simai(CommType::kAllGather, GroupKind::kDp, 2, kGiB, {64, 8}, o),
            Time() - Time::us(500'000));  // 1 / -1 * 1/2 s
}

TEST(SimaiCollective, StopsAboveTheTable) {
  EXPECT_THROW(simai(CommType::kAllGather, GroupKind::kTp, 8, 16 * kGiB + 1, {64, 8}), Error);
  EXPECT_NO_THROW(simai(CommType::kAllReduce, GroupKind::kTp, 8, 16 * kGiB + 1, {64, 8}));
}

TEST(OwnCollective, AMessageHasItsSendersNicsAlone) {
  // 10^9 B: over NVLink's 100 GB/s 10 ms; of 16 ranks on two servers, each with a NIC of 10 GB/s,
  // 100.
  const auto shift = [](std::int64_t ranks, std::int64_t bytes) {
    return ours(CommType::kSendRecv, GroupKind::kTp, ranks, bytes, {ranks, ranks});
  };
  EXPECT_EQ(shift(8, 1'000'000'000), Time::us(10'000));
  EXPECT_EQ(shift(16, 1'000'000'000), Time::us(100'000));
  EXPECT_EQ(shift(128, 1), Time::us(10));  // two ranks' latency, whoever else sends
}

TEST(SimaiCollective, MeasuredBandwidthReplacesTheFormula) {
  AnalyticOptions o = options(Flavour::kSimai);
  o.measured.collectives[BusBandwidths::kTp][1] = parse_bandwidth("50GBps");
  EXPECT_EQ(simai(CommType::kAllGather, GroupKind::kTp, 8, kGiB, {64, 8}, o), Time::us(17'500));
}

TEST(Collective, CountsInGigabytes) {
  // 8 GB at 100 GB/s * 2 * 7/8 = 140 ms.
  EXPECT_EQ(ours(CommType::kAllReduce, GroupKind::kTp, 8, 8'000'000'000, {64, 8}),
            Time::us(140'000));
  EXPECT_EQ(ours(CommType::kBroadcast, GroupKind::kTp, 8, 8'000'000'000, {64, 8}),
            Time::us(80'000));
}

TEST(Collective, HasALatencyFloorForAnySize) {
  EXPECT_EQ(ours(CommType::kAllReduce, GroupKind::kTp, 8, 1, {64, 8}), Time::us(15));
  EXPECT_EQ(ours(CommType::kBarrier, GroupKind::kTp, 8, 0, {64, 8}), Time::us(15));
  EXPECT_EQ(ours(CommType::kAllReduce, GroupKind::kTp, 8, 0, {64, 8}), Time());
  // 3 ranks: 10 + 2 * log2(1.5) = 11.169925 us.
  EXPECT_EQ(ours(CommType::kAllReduce, GroupKind::kTp, 3, 1, {64, 3}), Time::ps(11'169'925));
  // 256 ranks: as far beyond 128 as 128 is beyond 64, in log2: 320 + 120.
  EXPECT_EQ(ours(CommType::kAllReduce, GroupKind::kDp, 256, 1, {2048, 8}), Time::us(440));
  // 1 MB / 10 GB/s * 2 * 127/128 = 198 us is below the floor of 128 ranks.
  EXPECT_EQ(ours(CommType::kAllReduce, GroupKind::kDp, 128, 1'000'000, {1024, 8}), Time::us(320));
}

TEST(Collective, DataParallelGroupInsideAServerUsesNvlink) {
  // TP 2, DP 4 fill one server: 8 GB / 100 GB/s * 3/4.
  EXPECT_EQ(ours(CommType::kAllGather, GroupKind::kDp, 4, 8'000'000'000, {8, 2}), Time::us(60'000));
  // DP 8: 2 servers with 4 ranks and 4 NICs each: 8 GB / 40 GB/s * 7/8.
  EXPECT_EQ(ours(CommType::kAllGather, GroupKind::kDp, 8, 8'000'000'000, {16, 2}),
            Time::us(175'000));
}

TEST(Collective, GroupsShareNics) {
  AnalyticOptions o = options(Flavour::kDefault);
  o.nics_per_server = 4;  // half a NIC for each of the 8 DP groups: 8 GB / 5 GB/s * 1/2
  EXPECT_EQ(ours(CommType::kAllGather, GroupKind::kDp, 2, 8'000'000'000, {16, 8}, o),
            Time::us(800'000));
}

TEST(Collective, TpThatDoesNotFillServersSpansThem) {
  // TP 12: 8 on one server, 4 with 4 NICs on the next, whose others are of the next group: B x =
  // 40; 8 GB / 40 * 2 * 11/12 = 366.67 ms.
  EXPECT_EQ(ours(CommType::kAllReduce, GroupKind::kTp, 12, 8'000'000'000, {24, 12}),
            Time::ps(366'666'666'667));
}

TEST(Collective, LargerThanTheTableIsAsEfficientAsItsLastRow) {
  // 32e9 B / 100 GB/s * 7/8 = 280 ms.
  EXPECT_EQ(ours(CommType::kAllGather, GroupKind::kTp, 8, 32'000'000'000, {64, 8}),
            Time::us(280'000));
}

TEST(Collective, MeasuredBandwidthStandsForExpertsAndTheirReplicas) {
  AnalyticOptions o = options(Flavour::kDefault);
  o.measured.collectives[BusBandwidths::kEp][1] = parse_bandwidth("4GBps");
  for (const GroupKind group : {GroupKind::kEp, GroupKind::kDpEp}) {
    EXPECT_EQ(ours(CommType::kAllGather, group, 2, 8'000'000'000, {64, 8, 2}, o),
              Time::us(1'000'000));
  }
}

TEST(StageBandwidth, NvlinkInsideAServerElseAShareOfTheNics) {
  AnalyticOptions o = options(Flavour::kDefault);
  o.nics_per_server = 4;
  EXPECT_EQ(stage_bandwidth(8, o), parse_bandwidth("100GBps"));
  EXPECT_EQ(stage_bandwidth(16, o), parse_bandwidth("5GBps"));
  o.measured.pipeline = parse_bandwidth("47.5GBps");
  EXPECT_EQ(stage_bandwidth(16, o), parse_bandwidth("47.5GBps"));
}

// Servers of 8 GPUs and 4 NICs. First and last of six: one server still. Two pairs 8 apart: two
// servers, two on each, which have a quarter of its NICs. Out of order and uneven: three servers,
// two at most.
TEST(PlacementOf, CountsServersOfItsMembers) {
  AnalyticOptions options;
  options.gpus_per_server = 8;
  options.nics_per_server = 4;
  const auto of = [&](std::vector<std::int32_t> members) {
    const GroupPlacement<double> shape = placement_of(members, options);
    return std::array{shape.nodes, shape.ranks_per_node, shape.nics_per_node,
                      shape.fewest_per_node};
  };
  EXPECT_EQ(of({0, 6}), (std::array{1.0, 2.0, 4.0, 2.0}));
  EXPECT_EQ(of({0, 1, 8, 9}), (std::array{2.0, 2.0, 1.0, 2.0}));
  EXPECT_EQ(of({17, 3, 16, 9}), (std::array{3.0, 2.0, 0.5, 1.0}));
  EXPECT_EQ(of({5}), (std::array{1.0, 1.0, 4.0, 1.0}));
}

// 12 ranks on servers of 8, each GPU with a NIC of 50 GB/s of its own: a rank of the second server
// sends 8/12 of its buffer to the first, 12e9 8/12 / 50e9 = 160 ms; a message of 5e9 B takes
// 100 ms, by what a GPU has and not by what the least server has.
TEST(CollectiveTime, ServersThatAreNotFull) {
  AnalyticOptions options;
  options.nic = Bandwidth::bytes_per_second(50e9);
  options.nics_per_server = 4;  // the second server's
  options.nics_per_gpu = 1;
  const auto time = [&](CommType op, std::int64_t bytes) {
    return default_collective_time({op, GroupKind::kDp, 12, Bytes(bytes)}, {.gpus = 12}, options);
  };
  EXPECT_EQ(time(CommType::kAllToAll, 12'000'000'000), Time::us(160'000));
  EXPECT_EQ(time(CommType::kSendRecv, 5'000'000'000), Time::us(100'000));
  // A ring goes through the four NICs of the second server: 1.2e9 2 11/12 / 200e9 = 11 ms.
  EXPECT_EQ(time(CommType::kAllReduce, 1'200'000'000), Time::us(11'000));
  options.nic = Bandwidth::bytes_per_second(25e9);  // by --nic: of as many
  EXPECT_EQ(time(CommType::kSendRecv, 5'000'000'000), Time::us(200'000));
}

}  // namespace
}  // namespace lockstep::collective_time_test
