#include "simulator/collectives/nccl_time.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "simulator/collectives/trees.h"

namespace lockstep::nccl_time_test {
namespace {

/// Four GPUs of 100 GB/s on each server, four NICs of 10 GB/s, and rates that add nothing.
NcclSystem plain() {
  NcclSystem system;
  system.fabric.nvlink = parse_bandwidth("100GBps");
  system.fabric.nic = parse_bandwidth("10GBps");
  system.fabric.nics = 4;
  system.gpus_per_server = system.nics_per_server = 4;
  system.rates.floor_us = 0.5;
  system.rates.local_efficiency = system.rates.network_efficiency = 1;
  system.rates.local_overlap = system.rates.network_overlap = system.rates.ring_overlap = 1;
  system.rates.local_ring_overlap = system.rates.pair_overlap = 1;
  return system;
}

NcclTime time_of(const NcclSystem& system, CommType op, std::int64_t bytes, std::int32_t servers,
                 NcclAlgorithm algorithm, Protocol protocol, std::int32_t channels = 8) {
  NcclTask task;
  task.op = op;
  task.bytes = Bytes(bytes);
  task.servers = servers;
  task.ranks = 4 * servers;
  NcclChoice choice;
  choice.algorithm = algorithm;
  choice.protocol = protocol;
  choice.channels = choice.channels_of_all = channels;
  return nccl_time(task, system, choice);
}

// 16 ranks on four servers: 30 steps, a quarter of whose hops are of the network: 30 · (0.75 · 3.4
// + 0.25 · 14) = 181.5 us. Each NIC set sends S · 30/16 at 40 GB/s: 64 MB take 3000 us.
TEST(RingTime, CountsEveryHopOutOfAServer) {
  const NcclTime time = time_of(plain(), CommType::kAllReduce, 64'000'000, 4, NcclAlgorithm::kRing,
                                Protocol::kSimple);
  EXPECT_NEAR(time.latency_us, 0.5 + 181.5, 1e-9);
  EXPECT_NEAR(time.wire_us, 3000, 1e-9);
  EXPECT_TRUE(time.network_bound);
  EXPECT_NEAR(time.time_us, 0.5 + 181.5 + 3000, 1e-6);
}

// A step of 100 us is the floor of each of the 30 steps by Simple, not by LL128, nor in a server.
TEST(RingTime, AStepTakesAtLeastSoLong) {
  NcclSystem system = plain();
  system.rates.step_us = 100;
  const auto hops = [&](std::int32_t servers, Protocol protocol) {
    return time_of(system, CommType::kAllReduce, 1 << 20, servers, NcclAlgorithm::kRing, protocol)
               .latency_us -
           0.5;
  };
  EXPECT_NEAR(hops(4, Protocol::kSimple), 3000, 1e-9);
  EXPECT_NEAR(hops(4, Protocol::kLl128), 30 * (0.75 * 1.9 + 0.25 * 4), 1e-9);
  EXPECT_NEAR(hops(1, Protocol::kSimple), 6 * 3.4, 1e-9);
}

// ring_overlap bends rings by Simple alone: with 4 and equal parts 2^(1/4) of one.
TEST(RingTime, OverlapIsItsOwn) {
  NcclSystem system = plain();
  system.rates.ring_overlap = 4;
  system.rates.step_us = 100;
  const NcclTime ring =
      time_of(system, CommType::kAllReduce, 64'000'000, 4, NcclAlgorithm::kRing, Protocol::kSimple);
  EXPECT_NEAR(ring.time_us, 0.5 + 3000 * std::pow(2, 0.25), 1e-6);
}

// What a GPU passes on within its server at half of the rate: S · 2 · 3/4 at 50 GB/s; a broadcast's
// chain at all of it. The overlap of rings by Simple is their own there, too.
TEST(RingTime, RingsInAServerHaveTheirOwnRateAndOverlap) {
  NcclSystem system = plain();
  system.rates.local_duplex = 0.5;
  const NcclTime ring =
      time_of(system, CommType::kAllReduce, 64'000'000, 1, NcclAlgorithm::kRing, Protocol::kSimple);
  EXPECT_NEAR(ring.wire_us, 64'000 * 1.5 / 50, 1e-9);
  EXPECT_NEAR(
      time_of(system, CommType::kBroadcast, 64'000'000, 1, NcclAlgorithm::kRing, Protocol::kSimple)
          .wire_us,
      640, 1e-9);
  EXPECT_NEAR(ring.time_us, 0.5 + 6 * 3.4 + 1920, 1e-6);
  system.rates.local_ring_overlap = 2;
  EXPECT_NEAR(
      time_of(system, CommType::kAllReduce, 64'000'000, 1, NcclAlgorithm::kRing, Protocol::kSimple)
          .time_us,
      0.5 + std::hypot(6 * 3.4, 1920), 1e-6);
}

// An all-to-all of 16 ranks has two rounds over NICs, of 14 us times pair_latency each, and one hop
// in the server; each rank's 12/16 of 64 MB leave at 10 GB/s. pair_overlap is its own.
TEST(PairTime, RoundsHaveTheirOwnLatencyAndOverlap) {
  NcclSystem system = plain();
  system.rates.pair_latency = 3;
  const NcclTime time = time_of(system, CommType::kAllToAll, 64'000'000, 4,
                                NcclAlgorithm::kPointToPoint, Protocol::kSimple);
  EXPECT_NEAR(time.latency_us, 0.5 + 2 * 3 * 14 + 3.4, 1e-9);
  EXPECT_NEAR(time.wire_us, 4800, 1e-9);
  system.rates.pair_overlap = 2;
  EXPECT_NEAR(time_of(system, CommType::kAllToAll, 64'000'000, 4, NcclAlgorithm::kPointToPoint,
                      Protocol::kSimple)
                  .time_us,
              0.5 + std::hypot(2 * 3 * 14 + 3.4, 4800), 1e-6);
}

// Four servers, S = 80 MB: the trees' share 2 · 3/4 of it at half of 40 GB/s is 6000 us; hops 2 ·
// (3 · 4 + 2 · 14) = 80 us; and four network hops of 8 · 512 KiB / 2 at 40 GB/s: 52.4288 us each.
TEST(TreeTime, ChunksAreForwardedWhole) {
  NcclSystem system = plain();
  system.rates.tree_efficiency = 0.5;
  const NcclTime time =
      time_of(system, CommType::kAllReduce, 80'000'000, 4, NcclAlgorithm::kTree, Protocol::kSimple);
  EXPECT_NEAR(time.latency_us, 80.5, 1e-9);
  EXPECT_NEAR(time.wire_us, 6000, 1e-9);
  EXPECT_NEAR(time.fill_us, 4 * 52.4288, 1e-9);
  EXPECT_NEAR(time.time_us, 80.5 + 6000 + 4 * 52.4288, 1e-6);
  // A small message is one chunk: half of its 1 MB a hop.
  EXPECT_NEAR(
      time_of(system, CommType::kAllReduce, 1'000'000, 4, NcclAlgorithm::kTree, Protocol::kSimple)
          .fill_us,
      4 * 12.5, 1e-9);
  // By LL128 GPUs forward line by line, NICs chunks: 576,000 B on each of 8 channels, halved twice
  // as 64 · (1 + 1 + 0.4) / 4 = 38.4 of them do not make up the message (69 of 144,000 B do), at
  // half of 37.5 GB/s up and down. Its trees are as inefficient on two servers.
  const NcclTime two =
      time_of(system, CommType::kAllReduce, 80'000'000, 2, NcclAlgorithm::kTree, Protocol::kLl128);
  EXPECT_NEAR(two.fill_us, 2 * 8 * 144'000 / (40e3 * 0.9375 * 0.5), 1e-9);
  EXPECT_NEAR(two.wire_us, 80'000'000 / (40e3 * 0.9375 * 0.5), 1e-6);
  // Of 2 us a chunk each channel has 80 MB / 8 / 144,000.
  NcclSystem with_chunks = system;
  with_chunks.rates.chunk_us = 2;
  EXPECT_NEAR(time_of(with_chunks, CommType::kAllReduce, 80'000'000, 2, NcclAlgorithm::kTree,
                      Protocol::kLl128)
                  .wire_us,
              two.wire_us + 2 * 10'000'000.0 / 144'000, 1e-6);
  EXPECT_NEAR(
      time_of(system, CommType::kAllReduce, 80'000'000, 2, NcclAlgorithm::kTree, Protocol::kSimple)
          .wire_us,
      2000, 1e-9);
}

// A broadcast by Simple has the tree's hop, 14 us and not the ring's in release 2.8, and the
// second of three servers passes its chunks on; in a server nobody waits for them.
TEST(ChainTime, PassesChunksOnBetweenServers) {
  const NcclTime far = time_of(plain(), CommType::kBroadcast, 80'000'000, 3, NcclAlgorithm::kRing,
                               Protocol::kSimple);
  EXPECT_NEAR(far.latency_us, 14.5, 1e-9);
  EXPECT_NEAR(far.wire_us, 2000, 1e-9);
  EXPECT_NEAR(far.fill_us, 52.4288, 1e-9);
  const NcclTime near = time_of(plain(), CommType::kBroadcast, 80'000'000, 1, NcclAlgorithm::kRing,
                                Protocol::kSimple);
  EXPECT_NEAR(near.latency_us, 4.5, 1e-9);
  EXPECT_EQ(near.fill_us, 0);
}

// Channels of different orders: 12 ranks of three servers are 11 hops, 3 of them of the network, 8
// · 4 + 3 · 14 us by Simple; of the three crossings two wait for a chunk of half the eight
// channels; the last byte comes after the first has gone the whole way, whatever the rates overlap
// elsewhere. A single channel, or one order, does not wait.
TEST(ChainTime, OfSeveralOrdersTakesItsWholeWay) {
  NcclSystem system = plain();
  system.rates.network_overlap = system.rates.ring_overlap = 2;
  const auto time = [&](Protocol protocol, std::int32_t channels, bool same_order) {
    NcclTask task;
    task.op = CommType::kBroadcast;
    task.bytes = Bytes(80'000'000);
    task.servers = 3;
    task.ranks = 12;
    NcclChoice choice;
    choice.protocol = protocol;
    choice.channels = choice.channels_of_all = channels;
    choice.same_order = same_order;
    return nccl_time(task, system, choice);
  };
  const NcclTime simple = time(Protocol::kSimple, 8, false);
  EXPECT_NEAR(simple.latency_us, 0.5 + 8 * 4 + 3 * 14, 1e-9);
  EXPECT_NEAR(simple.fill_us, 2 * 4 * 524288 / 40e3, 1e-9);
  EXPECT_NEAR(simple.time_us, simple.latency_us + simple.fill_us + 2000, 1e-6);
  // By LL128 the chunks are 576,000 B, and the NICs carry 120 of 128 B.
  const NcclTime ll128 = time(Protocol::kLl128, 8, false);
  EXPECT_NEAR(ll128.latency_us, 0.5 + 8 * 1.9 + 3 * 4, 1e-9);
  EXPECT_NEAR(ll128.fill_us, 2 * 4 * 576000 / 37.5e3, 1e-9);
  EXPECT_NEAR(time(Protocol::kSimple, 8, true).latency_us, 14.5, 1e-9);
  EXPECT_NEAR(time(Protocol::kSimple, 1, false).latency_us, 14.5, 1e-9);
}

/// What the busiest of so many servers sends in the two trees, each of which carries half: to its
/// parent what it adds up, to its children what is added up.
double most_sent(std::int32_t servers) {
  std::vector<double> sent(static_cast<std::size_t>(servers));
  for (const std::vector<std::int32_t>& parents :
       {binary_tree(servers), complementary_tree(servers)}) {
    for (std::size_t node = 0; node < parents.size(); ++node) {
      if (parents[node] >= 0) {
        sent[node] += 0.5;
        sent[static_cast<std::size_t>(parents[node])] += 0.5;
      }
    }
  }
  return *std::ranges::max_element(sent);
}

// NVLSTree waits for the busiest server: 64 MB over NICs of 40 GB/s take 1600 us on two servers,
// 2400 on three and 3200 on more.
TEST(NvlsTreeTime, WaitsForTheBusiestServer) {
  for (const std::int32_t servers : {2, 3, 4, 5, 6, 7, 8, 10, 16, 31, 128}) {
    const NcclTime time = time_of(plain(), CommType::kAllReduce, 64'000'000, servers,
                                  NcclAlgorithm::kNvlsTree, Protocol::kSimple);
    EXPECT_NEAR(time.wire_us, 1600 * most_sent(servers), 1e-9) << servers;
    EXPECT_NEAR(time.wire_us, servers == 2 ? 1600 : servers == 3 ? 2400 : 3200, 1e-9) << servers;
  }
}

// Hops in the server by Simple have a factor of their own.
TEST(Rates, LocalSimple) {
  NcclSystem system = plain();
  system.rates.local_simple = 0.5;
  const auto hops = [&](Protocol protocol) {
    return time_of(system, CommType::kAllReduce, 1 << 20, 1, NcclAlgorithm::kRing, protocol)
               .latency_us -
           0.5;
  };
  EXPECT_NEAR(hops(Protocol::kSimple), 6 * 1.7, 1e-9);
  EXPECT_NEAR(hops(Protocol::kLl), 6 * 0.6, 1e-9);
}

}  // namespace
}  // namespace lockstep::nccl_time_test
