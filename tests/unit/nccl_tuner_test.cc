#include "simulator/collectives/nccl_tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "simulator/collectives/tune.h"
#include "tests/support/shapes.h"

namespace lockstep::nccl_tuner_test {
namespace {

using ::testing::HasSubstr;
using testing::in_servers_of;

NcclGroup group_of(std::int32_t per_server, std::int32_t ranks) {
  return nccl_group(in_servers_of(per_server, ranks));
}

NcclFabric h100() {
  NcclFabric fabric;
  fabric.nvlink = parse_bandwidth("370.8GBps");
  fabric.nvswitch = true;
  fabric.nic = parse_bandwidth("400Gbps");
  fabric.nics = 8;
  return fabric;
}

NcclFabric a100() {
  NcclFabric fabric = h100();
  fabric.arch = GpuArch::kAmpere;
  fabric.nvlink = parse_bandwidth("240GBps");
  fabric.nic = parse_bandwidth("200Gbps");
  fabric.amd_host = true;
  return fabric;
}

NcclCandidate candidate(NcclAlgorithm algorithm, Protocol protocol, CommType op, Bytes bytes,
                        const NcclGroup& group, const NcclFabric& fabric,
                        std::string_view version = "2.30.7") {
  NcclWishes wishes{parse_nccl_version(version), algorithm, protocol};
  const auto all = nccl_candidates(op, bytes, group, fabric, wishes);
  EXPECT_EQ(all.size(), 1U);
  return all.empty() ? NcclCandidate() : all.front();
}

// What NCCL's logs say: 24 channels on eight A100 (12 at 20 GB/s) and on eight H100 (12 at 30), 16
// on two servers of eight H100 with 400G, 8 on two of four with 200G, 2 over PCIe with one NIC.
TEST(Channels, AreThoseOfLogs) {
  EXPECT_EQ(nccl_channels(group_of(8, 8), a100()), 24);
  EXPECT_EQ(nccl_channels(group_of(8, 8), h100()), 24);
  EXPECT_EQ(nccl_channels(group_of(8, 16), h100()), 16);
  NcclFabric snellius = h100();
  snellius.nic = parse_bandwidth("200Gbps");
  snellius.nics = 4;
  EXPECT_EQ(nccl_channels(group_of(4, 8), snellius), 8);
  NcclFabric pcie = a100();
  pcie.nvlink = Bandwidth();
  pcie.nics = 1;
  EXPECT_EQ(nccl_channels(group_of(1, 2), pcie), 2);
}

// NVLS has its own, whatever the size.
TEST(Channels, OfNvls) {
  const auto channels = [&](std::int32_t ranks, GpuArch arch) {
    NcclFabric fabric = h100();
    fabric.arch = arch;
    const NcclWishes wishes{
        {}, ranks > 8 ? NcclAlgorithm::kNvlsTree : NcclAlgorithm::kNvls, Protocol::kSimple};
    return nccl_choice(CommType::kAllReduce, Bytes(8), group_of(8, ranks), fabric, wishes).channels;
  };
  EXPECT_EQ(channels(8, GpuArch::kHopper), 16);
  EXPECT_EQ(channels(16, GpuArch::kHopper), 16);
  EXPECT_EQ(channels(8, GpuArch::kBlackwell), 24);
  EXPECT_EQ(channels(16, GpuArch::kBlackwell), 32);
}

// 100 KiB by LL128 fill the 640 threads of 20 channels with 8 B each. Since 2.26 a channel has 32
// KiB of traffic besides: 7 for the 200 KiB of an all-reduce, 4 for the 100 KiB of an all-gather.
// That of LL counts four times: 24 for the 800 KiB.
TEST(Channels, HaveTrafficEnough) {
  const auto channels = [&](CommType op, Protocol protocol, std::string_view version) {
    const NcclWishes wishes{
        parse_nccl_version(version),
        op == CommType::kAllReduce ? NcclAlgorithm::kTree : NcclAlgorithm::kRing, protocol};
    return nccl_choice(op, Bytes(100 << 10), group_of(8, 8), h100(), wishes).channels;
  };
  EXPECT_EQ(channels(CommType::kAllReduce, Protocol::kLl128, "2.18.3"), 20);
  EXPECT_EQ(channels(CommType::kAllReduce, Protocol::kLl128, "2.30.7"), 7);
  EXPECT_EQ(channels(CommType::kAllGather, Protocol::kLl128, "2.30.7"), 4);
  EXPECT_EQ(channels(CommType::kAllReduce, Protocol::kLl, "2.30.7"), 24);
}

// 6.6 + 14 hops of 0.6 us; 6.8 + 2 · (7 · 0.6). One server.
TEST(Latency, OneServer) {
  const NcclGroup group = group_of(8, 8);
  EXPECT_NEAR(
      candidate(NcclAlgorithm::kRing, Protocol::kLl, CommType::kAllReduce, Bytes(8), group, h100())
          .latency_us,
      15.0, 1e-9);
  EXPECT_NEAR(
      candidate(NcclAlgorithm::kTree, Protocol::kLl, CommType::kAllReduce, Bytes(8), group, h100())
          .latency_us,
      15.2, 1e-9);
}

// Between servers a ring's local LL hop is at least the 1 us of posting to the NIC, a tree's is
// not. Two servers of eight: ring 6.6 + 28 · 1 + 2 · 2.7, tree 6.8 + 2 · (7 · 0.6 + 5).
TEST(Latency, TwoServers) {
  const NcclGroup group = group_of(8, 16);
  EXPECT_NEAR(
      candidate(NcclAlgorithm::kRing, Protocol::kLl, CommType::kAllReduce, Bytes(8), group, h100())
          .latency_us,
      40.0, 1e-9);
  EXPECT_NEAR(
      candidate(NcclAlgorithm::kTree, Protocol::kLl, CommType::kAllReduce, Bytes(8), group, h100())
          .latency_us,
      25.2, 1e-9);
}

// 12 channels of 30 GB/s are 360 GB/s on the bus, 8/14 of that for the algorithm; LL128 0.92 of it.
TEST(Bandwidth, RingOfEightH100) {
  const NcclGroup group = group_of(8, 8);
  const auto bandwidth = [&](Protocol protocol) {
    return candidate(NcclAlgorithm::kRing, protocol, CommType::kAllReduce, Bytes(8), group, h100())
        .bandwidth_GBps;
  };
  EXPECT_NEAR(bandwidth(Protocol::kSimple), 360.0 * 8 / 14, 1e-6);
  EXPECT_NEAR(bandwidth(Protocol::kLl128), 0.92 * 360 * 8 / 14, 1e-6);
  EXPECT_NEAR(bandwidth(Protocol::kLl), 141.0 * 8 / 14, 1e-6);  // below 0.5 · 360
}

// Eight channels: min(2 · 46.35 · 0.85 · 7/8, 48 · 2, 57.7) on two servers, capped at 45.5 on four.
TEST(Bandwidth, NvlsTreeIsCappedByChannel) {
  const auto bus = [&](std::int32_t ranks) {
    return candidate(NcclAlgorithm::kNvlsTree, Protocol::kSimple, CommType::kAllReduce, Bytes(8),
                     group_of(8, ranks), h100())
               .bandwidth_GBps *
           (2 * (ranks - 1)) / ranks;
  };
  EXPECT_NEAR(bus(16), 8 * 57.7, 1e-6);
  EXPECT_NEAR(bus(32), 8 * 45.5, 1e-6);
}

// 16 MiB is 2^18 times 64 B: 0.7 of the bandwidth by the tree's table for Simple. Beside Grace, on
// Hopper and before 2.28 NVLSTree has no such table.
TEST(Bandwidth, NvlsTreeGoesBySizeOnBlackwellBesideX86) {
  const auto seconds_of_bytes = [&](const NcclFabric& fabric, std::string_view version) {
    const NcclCandidate found =
        candidate(NcclAlgorithm::kNvlsTree, Protocol::kSimple, CommType::kAllReduce,
                  Bytes(16 << 20), group_of(8, 16), fabric, version);
    return (found.time_us - found.latency_us) * found.bandwidth_GBps * 1e3 / (16 << 20);
  };
  NcclFabric b200 = h100();
  b200.arch = GpuArch::kBlackwell;
  NcclFabric gb200 = b200;
  gb200.grace_host = true;
  EXPECT_NEAR(seconds_of_bytes(b200, "2.30.7"), 1 / 0.7, 1e-9);
  EXPECT_NEAR(seconds_of_bytes(b200, "2.27.5"), 1, 1e-9);
  EXPECT_NEAR(seconds_of_bytes(gb200, "2.30.7"), 1, 1e-9);
  EXPECT_NEAR(seconds_of_bytes(h100(), "2.30.7"), 1, 1e-9);
}

// Of gathers and scatters nothing but rings' bandwidths is told by ranks and steps: four channels a
// server of 48 GB/s, of which PAT has 0.75; NVLS sends 7/8 within 8 ranks, at 0.85 with 7/8 again.
TEST(Bandwidth, OfGathersWithoutRings) {
  NcclFabric four = h100();
  four.nics = 4;
  EXPECT_NEAR(candidate(NcclAlgorithm::kPat, Protocol::kSimple, CommType::kAllGather, Bytes(8),
                        group_of(1, 4), four)
                  .bandwidth_GBps,
              48 * 0.75, 1e-9);
  EXPECT_NEAR(candidate(NcclAlgorithm::kNvls, Protocol::kSimple, CommType::kReduceScatter, Bytes(8),
                        group_of(8, 8), h100())
                  .bandwidth_GBps,
              370.8 * 0.85 * 7 / 8 * 7 / 8, 1e-9);
}

TEST(Choice, FollowsSizeAndPlace) {
  const auto choice = [&](std::int64_t bytes, std::int32_t ranks, const NcclFabric& fabric,
                          std::string_view version = "2.30.7") {
    return nccl_choice(CommType::kAllReduce, Bytes(bytes), group_of(8, ranks), fabric,
                       {parse_nccl_version(version), {}, {}});
  };
  EXPECT_EQ(choice(1024, 8, h100()).algorithm, NcclAlgorithm::kRing);
  EXPECT_EQ(choice(1024, 8, h100()).protocol, Protocol::kLl);
  EXPECT_EQ(choice(1 << 30, 8, h100()).algorithm, NcclAlgorithm::kNvls);
  EXPECT_EQ(choice(1 << 30, 16, h100()).algorithm, NcclAlgorithm::kNvlsTree);
  EXPECT_EQ(choice(1024, 128, h100()).algorithm, NcclAlgorithm::kTree);
  // No multicast before Hopper, nor before 2.18.
  EXPECT_EQ(choice(1 << 30, 8, a100()).algorithm, NcclAlgorithm::kRing);
  EXPECT_EQ(choice(1 << 30, 8, h100(), "2.17.1").algorithm, NcclAlgorithm::kRing);
}

// 512 threads · 8 B · 8 ranks = 32 KiB a channel for ring LL.
TEST(Choice, SmallMessagesUseFewerChannels) {
  const NcclWishes wishes{{}, NcclAlgorithm::kRing, Protocol::kLl};
  const auto channels = [&](std::int64_t bytes) {
    return nccl_choice(CommType::kAllReduce, Bytes(bytes), group_of(8, 8), h100(), wishes).channels;
  };
  EXPECT_EQ(channels(1), 1);
  EXPECT_EQ(channels(64 * 1024 - 1), 1);
  EXPECT_EQ(channels(64 * 1024), 2);
  EXPECT_EQ(channels(1 << 20), 24);
}

// 512 threads * 8 B * 16 ranks = 64 KiB a channel, of which two servers of eight have eight that
// differ.
TEST(KeptAlike, SmallRingsGoRoundOnAllChannels) {
  const auto channels = [](std::int64_t bytes, const GroupShape& shape, const NcclFabric& fabric,
                           std::int32_t asked = 0) {
    TunedRequest tuned =
        tune({.op = CommType::kAllGather, .bytes = Bytes(bytes), .channels = asked}, shape, fabric);
    EXPECT_EQ(tuned.algorithm->name, "ring");
    const std::int32_t before = tuned.request.channels;
    keep_ranks_alike(tuned, shape);
    return std::pair(before, tuned.request.channels);
  };
  const std::int64_t small = 32 * 1024, large = 256 << 20;
  EXPECT_EQ(channels(small, in_servers_of(8, 16), h100()), std::pair(1, 0));
  EXPECT_EQ(channels(4 * small, in_servers_of(8, 16), h100()), std::pair(2, 0));
  EXPECT_EQ(channels(large, in_servers_of(8, 16), h100()), std::pair(0, 0));
  // What the user asks for stays, and so does what is no symmetry to begin with.
  EXPECT_EQ(channels(small, in_servers_of(8, 16), h100(), 1), std::pair(1, 1));
  EXPECT_EQ(channels(small, in_servers_of(8, 12), h100()), std::pair(1, 1));
  // One NIC a server is why there are two channels, whatever the size.
  NcclFabric one_nic = a100();
  one_nic.nics = 1;
  EXPECT_EQ(channels(large, in_servers_of(8, 16), one_nic), std::pair(2, 2));
}

// Two servers of eight have eight rings that differ; with rail affinity and two NIC ports a GPU
// their repetitions use the second ports, if NCCL has so many channels (16 of 256 MiB, one of 32
// KiB).
TEST(Tuned, ChannelsForAllPortsOfAGpu) {
  const GroupShape shape = in_servers_of(8, 16);
  const auto channels = [&](std::int64_t bytes, std::int32_t ports, std::int32_t asked = 0) {
    TunedRequest tuned =
        tune({.op = CommType::kAllGather, .bytes = Bytes(bytes), .channels = asked}, shape, h100());
    use_all_ports(tuned, shape, ports);
    return tuned.request.channels;
  };
  const std::int64_t large = 256 << 20;
  EXPECT_EQ(channels(large, 1), 0);
  EXPECT_EQ(channels(large, 2), 16);
  EXPECT_EQ(channels(large, 64), nccl_channels(nccl_group(shape), h100()));
  EXPECT_EQ(channels(32 * 1024, 2), 1);
  EXPECT_EQ(channels(large, 2, 8), 8);
}

TEST(KeptAlike, SmallSumsTakeNoTree) {
  const auto name = [](std::int64_t bytes, std::int32_t ranks, std::int32_t per_server = 8) {
    const GroupShape shape = in_servers_of(per_server, ranks);
    TunedRequest tuned = tune({.op = CommType::kAllReduce, .bytes = Bytes(bytes)}, shape, h100());
    EXPECT_EQ(tuned.algorithm->name, "tree");
    keep_ranks_alike(tuned, shape);
    return tuned.algorithm->name;
  };
  EXPECT_EQ(name(64 * 1024, 64), "circulant");
  EXPECT_EQ(name(64 * 1024 + 1, 64), "tree");
  EXPECT_EQ(name(4, 48), "circulant");  // six servers
  EXPECT_EQ(name(4, 17 * 32, 32), "circulant");
  EXPECT_EQ(name(4, 6, 1), "circulant");
  EXPECT_EQ(name(4, 44), "tree");                            // half a server
  EXPECT_EQ(name(4, 64, 24), "recursive-halving-doubling");  // two servers of 24, one of 16
}

// A slice of S / 16 takes S / 16 / 370.8 GB/s: 11.3 us of 64 MiB, which hide a hop of some 3 us,
// and 2.83 us of 16 MiB, which do not. The 14 hops of a sum become two of 7 each.
TEST(KeptAlike, AServerExchangesAtOnceInARingsTime) {
  using enum CommType;
  const auto exchanged = [](CommType op, std::int64_t bytes, const GroupShape& shape,
                            const NcclFabric& fabric, Protocol protocol) {
    TunedRequest tuned = tune({.op = op, .bytes = Bytes(bytes)}, shape, fabric,
                              {{}, NcclAlgorithm::kRing, protocol});
    EXPECT_EQ(tuned.algorithm->name, "ring");
    const Time hop = tuned.request.hop_latency->local;
    exchange_within_server(tuned, shape, fabric, 8);
    const bool is = tuned.algorithm->name == "hierarchical";
    EXPECT_TRUE(is || tuned.algorithm->name == "ring");
    const Time now = tuned.request.hop_latency->local;
    return std::pair(is, now.count_ps() / hop.count_ps());
  };
  const std::int64_t large = 64 << 20;
  const GroupShape server = in_servers_of(8, 8);
  const auto simple = Protocol::kSimple;
  EXPECT_EQ(exchanged(kAllGather, large, server, h100(), simple), std::pair(true, 1L));
  EXPECT_EQ(exchanged(kReduceScatter, large, server, h100(), simple), std::pair(true, 1L));
  EXPECT_EQ(exchanged(kReduceScatter, large / 4, server, h100(), simple), std::pair(false, 1L));
  EXPECT_EQ(exchanged(kAllReduce, large, server, h100(), simple), std::pair(false, 1L));
  EXPECT_EQ(exchanged(kAllReduce, 4, server, h100(), Protocol::kLl), std::pair(true, 7L));
  // Four of a server's eight share its links with others.
  EXPECT_FALSE(exchanged(kAllGather, large, in_servers_of(4, 4), h100(), simple).first);
  EXPECT_TRUE(exchanged(kAllReduce, 4, in_servers_of(4, 4), h100(), Protocol::kLl).first);
  // Two have no other neighbour, others no server in common, or no switch between them.
  EXPECT_FALSE(exchanged(kAllGather, large, in_servers_of(2, 2), h100(), simple).first);
  EXPECT_FALSE(exchanged(kAllGather, large, in_servers_of(8, 16), h100(), simple).first);
  NcclFabric mesh = h100();
  mesh.nvswitch = false;
  EXPECT_FALSE(exchanged(kAllGather, large, server, mesh, simple).first);
}

TEST(Choice, PatNeedsOneRankAServer) {
  const NcclWishes wishes{{}, NcclAlgorithm::kPat, {}};
  const auto count = [&](std::int32_t per_server) {
    return nccl_candidates(CommType::kAllGather, Bytes(1024), group_of(per_server, 16), h100(),
                           wishes)
        .size();
  };
  EXPECT_EQ(count(1), 1U);
  EXPECT_EQ(count(8), 0U);
}

// A NIC behind the host bridge: no relay, so a tree is all at one GPU (0.85 of min(0.92 · 4 · 24, 4
// · 36) = 88.32, halved); LL128 goes between servers only from 2.27 on and on Hopper.
TEST(Choice, NicBehindHost) {
  NcclFabric fabric = h100();
  fabric.nvswitch = false;
  fabric.nic = parse_bandwidth("200Gbps");
  fabric.nics = 4;
  fabric.nic_behind_host = true;
  const NcclGroup group = group_of(4, 64);
  EXPECT_NEAR(candidate(NcclAlgorithm::kTree, Protocol::kSimple, CommType::kAllReduce, Bytes(8),
                        group, fabric)
                  .bandwidth_GBps,
              0.85 * 88.32 / 2, 1e-9);
  const auto ways = [&](const NcclFabric& on, std::string_view version) {
    std::size_t ll128 = 0;
    for (const NcclCandidate& way : nccl_candidates(CommType::kAllReduce, Bytes(8), group, on,
                                                    {parse_nccl_version(version), {}, {}})) {
      ll128 += way.protocol == Protocol::kLl128 ? 1U : 0U;
    }
    return ll128;
  };
  EXPECT_EQ(ways(fabric, "2.23.4"), 0U);
  EXPECT_EQ(ways(fabric, "2.27.5"), 2U);
  fabric.arch = GpuArch::kAmpere;
  EXPECT_EQ(ways(fabric, "2.27.5"), 0U);
  fabric.nic_behind_host = false;
  EXPECT_EQ(ways(fabric, "2.23.4"), 2U);
}

// Four H100 linked two by two, 200G a GPU, as Snellius has them: measured all-reduces of two
// servers stay on trees by LL128 up to 256 MiB and go to Simple at 512. Three channels share a
// pair's six links, 123.6 GB/s, so that a tree's search ends at 40 GB/s a channel, not at twice the
// NICs' 24.
TEST(Choice, TreesInAMesh) {
  NcclFabric mesh = h100();
  mesh.nvswitch = false;
  mesh.mesh = true;
  mesh.nic = parse_bandwidth("200Gbps");
  mesh.nics = 4;
  const auto protocol = [&](std::int64_t mebibytes) {
    const NcclChoice choice =
        nccl_choice(CommType::kAllReduce, Bytes(mebibytes << 20), group_of(4, 8), mesh,
                    {parse_nccl_version("2.22.3"), {}, {}});
    EXPECT_EQ(choice.algorithm, NcclAlgorithm::kTree) << mebibytes;
    return choice.protocol;
  };
  EXPECT_EQ(protocol(128), Protocol::kLl128);
  EXPECT_EQ(protocol(256), Protocol::kLl128);
  EXPECT_EQ(protocol(512), Protocol::kSimple);
  const auto bandwidth = [&] {
    return candidate(NcclAlgorithm::kTree, Protocol::kSimple, CommType::kAllReduce, Bytes(8),
                     group_of(4, 8), mesh, "2.22.3")
        .bandwidth_GBps;
  };
  EXPECT_NEAR(bandwidth(), 0.92 * 4 * 40 / 2, 1e-9);
  mesh.mesh = false;
  EXPECT_NEAR(bandwidth(), 4 * 41.4 / 2, 1e-9);
}

// Release 2.8 on 16 A100 of two servers, four channels of 24 GB/s: LL128 is 16.9 a channel, 7/9 of
// it in a tree; trees of two servers have 110 at most; a hop in the server by LL costs 1.8 times
// 0.47.
TEST(Choice, Release2_8) {
  NcclFabric fabric = a100();
  fabric.nics = 4;
  const NcclGroup group = group_of(8, 16);
  const auto way = [&](NcclAlgorithm algorithm, Protocol protocol) {
    return candidate(algorithm, protocol, CommType::kAllReduce, Bytes(8), group, fabric, "2.8.4");
  };
  EXPECT_NEAR(way(NcclAlgorithm::kRing, Protocol::kLl128).bandwidth_GBps, 4 * 16.9 * 16 / 30, 1e-9);
  EXPECT_NEAR(way(NcclAlgorithm::kTree, Protocol::kLl128).bandwidth_GBps, 4 * 16.9 * 7 / 9 / 2,
              1e-9);
  EXPECT_NEAR(way(NcclAlgorithm::kTree, Protocol::kSimple).bandwidth_GBps, 110.0 / 2, 1e-9);
  EXPECT_NEAR(way(NcclAlgorithm::kRing, Protocol::kLl).latency_us, 3.6 + 28 * 1.8 * 0.47 + 2 * 2.7,
              1e-9);
}

// NCCL's sameChannels: channels that begin at GPUs beside different NICs pass the ranks in
// different orders, and a chain then takes a hop for each rank, by Simple a tree's. Four V100 with
// two EDR NICs (ABCI), release 2.8.4, on n ranks: LL 3.6 + 2.7 n us at 6 GB/s, Simple 8.4 + 28 n at
// 24, equal at 8 (25.3 n + 4.8) KB: measured broadcasts go from one to the other at 2, 4 and 8 MiB.
TEST(Choice, ChainsOfSeveralOrders) {
  NcclFabric fabric;
  fabric.arch = GpuArch::kVolta;
  fabric.nvlink = parse_bandwidth("120GBps");
  fabric.mesh = true;
  fabric.nic = parse_bandwidth("100Gbps");
  fabric.nics = 2;
  fabric.nic_behind_host = true;
  const NcclWishes release{parse_nccl_version("2.8.4"), {}, {}};
  const auto protocol = [&](std::int32_t servers, std::int64_t mebibytes) {
    const NcclChoice choice = nccl_choice(CommType::kBroadcast, Bytes(mebibytes << 20),
                                          group_of(4, 4 * servers), fabric, release);
    EXPECT_FALSE(choice.same_order);
    return choice.protocol;
  };
  for (const std::int32_t servers : {2, 4, 8}) {
    EXPECT_EQ(protocol(servers, servers / 2), Protocol::kLl) << servers;
    EXPECT_EQ(protocol(servers, servers), Protocol::kSimple) << servers;
  }
  const auto latency = [&](std::int32_t per_server, std::int32_t ranks, Protocol by) {
    return candidate(NcclAlgorithm::kRing, by, CommType::kBroadcast, Bytes(1024),
                     group_of(per_server, ranks), fabric, "2.8.4")
        .latency_us;
  };
  EXPECT_NEAR(latency(4, 8, Protocol::kLl), 3.6 + 8 * 2.7, 1e-9);
  EXPECT_NEAR(latency(4, 8, Protocol::kSimple), 8.4 + 8 * 28, 1e-9);
  EXPECT_NEAR(latency(4, 4, Protocol::kSimple), 8.4 + 4 * 28, 1e-9);
  EXPECT_NEAR(latency(2, 2, Protocol::kSimple), 8.4 + 3.4, 1e-9);
  fabric.nics = 1;  // one channel has one order
  EXPECT_NEAR(latency(4, 8, Protocol::kSimple), 8.4 + 9.6, 1e-9);
  fabric.mesh = false;
  EXPECT_NEAR(latency(4, 4, Protocol::kSimple), 8.4 + 3.4, 1e-9);
}

// Trees by Simple had other latencies in each of 2.18 (hops of 4 and 14 us), 2.20 to 2.22 (28, a
// chunk's) and 2.23 (4 and 14, and 8.4 to begin with); from 2.20 on trees at one GPU count for
// 0.85. Two servers of four A100 with two NICs behind an AMD host (Polaris): measured all-reduces
// of 2.18 go from rings by LL to trees by Simple at 256 KiB and on to rings by Simple at 8 MiB;
// those of 2.21 know no trees, and Simple from 2 MiB on.
TEST(Choice, TreesBySimpleByRelease) {
  NcclFabric fabric = a100();
  fabric.nvswitch = false;
  fabric.nics = 2;
  fabric.nic_behind_host = true;
  const auto way = [&](std::string_view version, std::int64_t kibibytes) {
    const NcclChoice choice =
        nccl_choice(CommType::kAllReduce, Bytes(kibibytes << 10), group_of(4, 8), fabric,
                    {parse_nccl_version(version), {}, {}});
    return std::pair(choice.algorithm, choice.protocol);
  };
  const std::pair ring_ll(NcclAlgorithm::kRing, Protocol::kLl);
  const std::pair ring(NcclAlgorithm::kRing, Protocol::kSimple);
  const std::pair tree(NcclAlgorithm::kTree, Protocol::kSimple);
  EXPECT_EQ(way("2.18.3", 128), ring_ll);
  EXPECT_EQ(way("2.18.3", 256), tree);
  EXPECT_EQ(way("2.18.3", 4096), tree);
  EXPECT_EQ(way("2.18.3", 8192), ring);
  EXPECT_EQ(way("2.21.5", 128), ring_ll);
  EXPECT_EQ(way("2.21.5", 1024), ring_ll);
  EXPECT_EQ(way("2.21.5", 2048), ring);
  const auto latency = [&](std::string_view version) {
    return candidate(NcclAlgorithm::kTree, Protocol::kSimple, CommType::kAllReduce, Bytes(1024),
                     group_of(4, 8), fabric, version)
        .latency_us;
  };
  EXPECT_NEAR(latency("2.18.3"), 2 * (3 * 4 + 14), 1e-9);
  EXPECT_NEAR(latency("2.20.3"), 2 * (3 * 28 + 28), 1e-9);
  EXPECT_NEAR(latency("2.22.3"), 2 * (3 * 28 + 28), 1e-9);
  EXPECT_NEAR(latency("2.23.4"), 8.4 + 2 * (3 * 4 + 14), 1e-9);
}

// Release 2.16 had the latencies of 2.8, and LL a quarter of the bandwidth of a reduce, too: 3.6
// + 2.7 us and 6 GB/s against 8.4 + 9.6 and 24 on two servers of one A100 on PCIe, equal at 93.6 KB
// (measured broadcasts and reduces go to Simple between 80 and 96 KiB, reduce-scatters, twice as
// fast, between 160 and 192); in one server 9.5 us apart, 76 KB (measured between 72 and 77 KiB).
TEST(Choice, Release2_16) {
  NcclFabric pcie = a100();
  pcie.nvlink = Bandwidth();
  pcie.nvswitch = false;
  pcie.nics = 1;
  pcie.nic_behind_host = true;
  const auto protocol = [&](CommType op, const NcclGroup& group, std::int64_t bytes) {
    return nccl_choice(op, Bytes(bytes), group, pcie, {parse_nccl_version("2.16.5"), {}, {}})
        .protocol;
  };
  for (const CommType op : {CommType::kBroadcast, CommType::kReduce}) {
    EXPECT_EQ(protocol(op, group_of(1, 2), 93'500), Protocol::kLl);
    EXPECT_EQ(protocol(op, group_of(1, 2), 93'700), Protocol::kSimple);
  }
  EXPECT_EQ(protocol(CommType::kReduceScatter, group_of(1, 2), 187'100), Protocol::kLl);
  EXPECT_EQ(protocol(CommType::kReduceScatter, group_of(1, 2), 187'300), Protocol::kSimple);
  EXPECT_EQ(protocol(CommType::kReduce, group_of(2, 2), 75'900), Protocol::kLl);
  EXPECT_EQ(protocol(CommType::kReduce, group_of(2, 2), 76'100), Protocol::kSimple);
}

// From 2.22 on LL is half of the rings' bandwidth, up to 141 GB/s on Hopper: all-gathers of four
// H100 linked two by two (Snellius, 2.22.3) stay with LL to 2 MiB, and are by Simple at 4.
TEST(Choice, LlOfRelease2_22) {
  NcclFabric mesh = h100();
  mesh.nvswitch = false;
  mesh.mesh = true;
  const auto protocol = [&](std::string_view version, std::int64_t mebibytes) {
    return nccl_choice(CommType::kAllGather, Bytes(mebibytes << 20), group_of(4, 4), mesh,
                       {parse_nccl_version(version), {}, {}})
        .protocol;
  };
  EXPECT_EQ(protocol("2.22.3", 2), Protocol::kLl);
  EXPECT_EQ(protocol("2.22.3", 4), Protocol::kSimple);
  EXPECT_EQ(protocol("2.21.5", 2), Protocol::kSimple);
}

TEST(Choice, PointToPointIsLlForSmallPieces) {
  const auto protocol = [&](std::int64_t bytes) {
    return nccl_choice(CommType::kAllToAll, Bytes(bytes), group_of(8, 8), h100(), {}).protocol;
  };
  EXPECT_EQ(protocol(8 * 16 * 1024), Protocol::kLl);
  EXPECT_EQ(protocol(9 * 16 * 1024), Protocol::kSimple);
}

TEST(Choice, WrongProtocolIsAnError) {
  try {
    nccl_choice(CommType::kAllReduce, Bytes(1024), group_of(8, 8), h100(),
                {{}, NcclAlgorithm::kNvls, Protocol::kLl128});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("nvls by the protocol simple only"));
  }
}

TEST(Version, IsChecked) {
  EXPECT_EQ(parse_nccl_version("2.27.5").number, 22705);
  EXPECT_EQ(parse_nccl_version("2.18").number, 21800);
  for (const char* text : {"", "2", "2.7.9", "3.0", "2.x", "2.18.3.1", "2.-1"}) {
    EXPECT_THROW(parse_nccl_version(text), Error) << text;
  }
}

TEST(Arch, ByName) {
  EXPECT_EQ(arch_of("V100"), GpuArch::kVolta);
  EXPECT_EQ(arch_of("A800"), GpuArch::kAmpere);
  EXPECT_EQ(arch_of("H20"), GpuArch::kHopper);
  EXPECT_EQ(arch_of("GB200"), GpuArch::kBlackwell);
  EXPECT_EQ(arch_of("b300"), GpuArch::kBlackwell);
  EXPECT_TRUE(is_beside_grace("GB200") && is_beside_grace("NVIDIA GH200 480GB"));
  EXPECT_FALSE(is_beside_grace("B200") || is_beside_grace("H100"));
  // Neither case nor a vendor nor memory ("80GB" has a B) makes another GPU of it.
  EXPECT_EQ(arch_of("a100"), GpuArch::kAmpere);
  EXPECT_EQ(arch_of("NVIDIA A100-SXM4-80GB"), GpuArch::kAmpere);
  EXPECT_EQ(arch_of("Tesla V100-SXM2-32GB"), GpuArch::kVolta);
  EXPECT_EQ(arch_of("H100-SXM5-80GB"), GpuArch::kHopper);
  EXPECT_EQ(arch_of("NVIDIA H100 80GB HBM3"), GpuArch::kHopper);
}

TEST(Names, GoBothWays) {
  for (const CollectiveAlgorithm* algorithm : collective_algorithms()) {
    const auto theirs = nccl_algorithm_named(algorithm->name);
    for (const CommType op : algorithm->ops) {
      if (theirs && *theirs != NcclAlgorithm::kPointToPoint) {
        const std::string_view ours = our_name(*theirs, op, 4);
        EXPECT_EQ(nccl_algorithm_named(ours), theirs);
      }
    }
  }
  EXPECT_FALSE(nccl_algorithm_named("bruck"));
}

}  // namespace
}  // namespace lockstep::nccl_tuner_test
