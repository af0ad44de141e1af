#include "topologies/routing.h"

#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/fabrics.h"
#include "topologies/ecmp_hash.h"

namespace lockstep::routing_test {
namespace {

using ::testing::ElementsAre;
using testing::FabricMaker;
using ::testing::HasSubstr;

FlowKey key(std::int32_t source, std::int32_t destination, std::uint16_t source_port = 10000) {
  FlowKey k;
  k.source = NodeId(source);
  k.destination = NodeId(destination);
  k.source_port = source_port;
  return k;
}

std::vector<std::int32_t> path(Router& router, const FlowKey& k) {
  Route route;
  router.route(k, route);
  std::vector<PortId> ports;
  for (const Hop& hop : route.hops) {
    EXPECT_EQ(hop.share, 1);
    ports.push_back(hop.port);
  }
  return testing::nodes_along(router.topology(), ports);
}

/// The documented rule, from the bytes: which of `count` next hops a flow takes at a node.
std::int32_t pick(const FlowKey& k, std::uint32_t seed, std::uint32_t count) {
  std::string bytes;
  for (const NodeId node : {k.source, k.destination}) {
    bytes += '\x01';
    bytes += static_cast<char>(node.value % 256);
    bytes += static_cast<char>(node.value / 256);
    bytes += '\x0b';
  }
  for (const unsigned port : {unsigned{k.source_port}, unsigned{k.destination_port}}) {
    bytes += static_cast<char>(port & 0xff);
    bytes += static_cast<char>(port >> 8);
  }
  return static_cast<std::int32_t>(murmur3_x86_32(bytes, seed) % count);
}

// Two servers of 4: GPUs 0-3 and 4-7, NVSwitches 8 and 9, leaves 10-13 (one a rail), spines 14-17.
Topology two_servers() { return testing::rail_optimised(2, 4, 4, 2); }

TEST(Routing, InsideAServerGoesOverItsNvSwitch) {
  const Topology topology = two_servers();
  Router router(topology);
  EXPECT_THAT(path(router, key(0, 3)), ElementsAre(0, 8, 3));
  EXPECT_THAT(path(router, key(6, 4)), ElementsAre(6, 9, 4));
}

TEST(Routing, SameRailIsTwoHopsOverTheLeaf) {
  const Topology topology = two_servers();
  Router router(topology);
  EXPECT_THAT(path(router, key(1, 5)), ElementsAre(1, 11, 5));
  EXPECT_THAT(path(router, key(7, 3)), ElementsAre(7, 13, 3));
}

TEST(Routing, CrossRailTakesTheSpineTheLeafHashes) {
  const Topology topology = two_servers();
  Router router(topology);
  for (std::uint16_t port = 10000; port < 10020; ++port) {
    const FlowKey k = key(0, 5, port);
    EXPECT_THAT(path(router, k), ElementsAre(0, 10, 14 + pick(k, 10, 4), 11, 5));
  }
}

TEST(Routing, PxnEntersTheDestinationsRailInsideTheServer) {
  const Topology topology = two_servers();
  RouteOptions options;
  options.pxn = true;
  Router router(topology, options);
  EXPECT_THAT(path(router, key(0, 5)), ElementsAre(0, 8, 1, 11, 5));
  EXPECT_THAT(path(router, key(1, 5)), ElementsAre(1, 11, 5));  // same rail: nothing to gain
  EXPECT_THAT(path(router, key(0, 1)), ElementsAre(0, 8, 1));   // same server
}

TEST(Routing, PxnHashesWithTheRelaysAddress) {
  // Two segments of one server: even a rail crosses the spine.
  const Topology topology =
      testing::rail_optimised(2, 2, 8, 1);  // nvs 4-5, leaves 6-9, spines 10-17
  RouteOptions options;
  options.pxn = true;
  Router router(topology, options);
  for (std::uint16_t port = 10000; port < 10010; ++port) {
    const FlowKey wire = key(1, 3, port);
    EXPECT_THAT(path(router, key(0, 3, port)),
                ElementsAre(0, 4, 1, 7, 10 + pick(wire, 7, 8), 9, 3));
  }
}

TEST(Routing, PxnWithoutARelayGoesTheUsualWay) {
  // Server 0 has one GPU, server 1 two: GPU 2 is on rail 1, which server 0 lacks.
  FabricMaker maker;
  const NodeId a = maker.gpu(0), b = maker.gpu(1), c = maker.gpu(1);
  const NodeId nvs = maker.nvswitch(1), left = maker.leaf(), right = maker.leaf();
  maker.link(b, nvs);
  maker.link(c, nvs);
  maker.link(a, left);
  maker.link(b, left);
  maker.link(c, right);
  maker.link(left, right);
  RouteOptions options;
  options.pxn = true;
  Router router(maker.topology, options);
  EXPECT_THAT(path(router, key(0, 2)), ElementsAre(0, left.value, right.value, 2));
  EXPECT_THAT(path(router, key(2, 0)), ElementsAre(2, nvs.value, 1, left.value, 0));
}

TEST(Routing, PxnKnowsRailsThatSeveralGpusShare) {
  // Two servers of 4 on two leaves by turns: GPUs 0 and 2 are on one rail, 1 and 3 on the other.
  FabricMaker maker;
  maker.servers(2, 4);  // NVSwitches 8 and 9
  const NodeId leaves[] = {maker.leaf(), maker.leaf()};
  for (std::int32_t i = 0; i < 8; ++i) {
    maker.link(NodeId(i), leaves[i % 2]);
  }
  maker.link(leaves[0], leaves[1]);
  RouteOptions options;
  options.pxn = true;
  Router router(maker.topology, options);
  EXPECT_THAT(path(router, key(0, 6)), ElementsAre(0, 10, 6));        // one rail already
  EXPECT_THAT(path(router, key(0, 7)), ElementsAre(0, 8, 3, 11, 7));  // to the like place
}

TEST(Routing, PxnServesAGpuWithoutANic) {
  FabricMaker maker;
  maker.servers(2, 2);  // NVSwitches 4 and 5
  const NodeId leaf = maker.leaf();
  for (const std::int32_t i : {0, 2, 3}) {
    maker.link(NodeId(i), leaf);
  }
  RouteOptions options;
  Route route;
  EXPECT_THROW(Router(maker.topology, options).route(key(1, 3), route), Error);
  options.pxn = true;
  Router router(maker.topology, options);
  EXPECT_THAT(path(router, key(1, 3)), ElementsAre(1, 4, 0, leaf.value, 3));
}

TEST(Routing, DualPlaneKeepsToThePlaneTheHostHashes) {
  // GPUs 0-3, NVSwitches 4-5, leaves A 6-7, B 8-9, spines A 10-12, B 13-15.
  const Topology topology = testing::dual_plane(2, 2, 3);
  Router router(topology);
  int planes = 0;
  for (std::uint16_t port = 10000; port < 10032; ++port) {
    const FlowKey same_rail = key(0, 2, port), cross_rail = key(0, 3, port);
    const std::int32_t plane = pick(same_rail, kHostHashSeed, 2);
    EXPECT_THAT(path(router, same_rail), ElementsAre(0, 6 + 2 * plane, 2));
    const std::int32_t other = pick(cross_rail, kHostHashSeed, 2);
    const std::int32_t leaf = 6 + 2 * other;
    const std::int32_t spine =
        10 + 3 * other + pick(cross_rail, static_cast<std::uint32_t>(leaf), 3);
    EXPECT_THAT(path(router, cross_rail), ElementsAre(0, leaf, spine, leaf + 1, 3));
    planes |= 1 << plane;
  }
  EXPECT_EQ(planes, 3);  // both planes were used
}

TEST(Routing, RailAffinityPicksThePortByChannel) {
  const Topology topology = testing::dual_plane(2, 2, 3);
  RouteOptions options;
  options.rail_affinity = true;
  Router router(topology, options);
  FlowKey k = key(0, 2);
  // Servers of two: channels two apart, which a ring has at one GPU, take different ports.
  const std::int32_t port_of[] = {0, 1, 1, 0, 1, 0};
  for (k.channel = 0; k.channel < 6; ++k.channel) {
    EXPECT_THAT(path(router, k), ElementsAre(0, 6 + 2 * port_of[k.channel], 2));
  }
}

// Of any P channels at such a distance as a GPU of a server of G has them, which is the number of
// ranks that a group has there, each takes another of its P ports.
TEST(Routing, RailAffinityGivesEqualDistancesAllPorts) {
  struct Case {
    std::int32_t gpus, ports;
    std::vector<std::int32_t> distances;
  };
  for (const Case& of : {Case{8, 2, {1, 2, 4, 8}}, Case{8, 4, {1, 2, 4, 8}}, Case{6, 2, {3, 6}}}) {
    FabricMaker maker;
    maker.servers(2, of.gpus);
    for (std::int32_t plane = 0; plane < of.ports; ++plane) {
      const NodeId leaf = maker.leaf();
      for (std::int32_t gpu = 0; gpu < 2 * of.gpus; ++gpu) {
        maker.link(NodeId(gpu), leaf);
      }
    }
    RouteOptions options;
    options.rail_affinity = true;
    Router router(maker.topology, options);
    for (const std::int32_t distance : of.distances) {
      std::set<std::int32_t> leaves;
      for (std::int32_t i = 0; i < of.ports; ++i) {
        FlowKey k = key(0, of.gpus);
        k.channel = i * distance;
        leaves.insert(path(router, k).at(1));
      }
      EXPECT_EQ(std::ssize(leaves), of.ports) << of.gpus << " " << distance;
    }
  }
}

// A server of two GPUs on three NVSwitches, and two direct links between two others.
TEST(Routing, NvLinksAreSpreadUnlessTheyAreHashed) {
  FabricMaker maker;
  for (int i = 0; i < 4; ++i) {
    maker.gpu(i / 2);
  }
  for (int i = 0; i < 3; ++i) {
    const NodeId nvs = maker.nvswitch(0);
    maker.link(NodeId(0), nvs);
    maker.link(NodeId(1), nvs);
  }
  maker.link(NodeId(2), NodeId(3));
  maker.link(NodeId(2), NodeId(3));
  for (const bool rails : {false, true}) {
    RouteOptions options;
    options.rail_affinity = rails;
    Router router(maker.topology, options);
    Route route;
    router.route(key(0, 1), route);
    ASSERT_EQ(route.hops.size(), 6U);
    for (const Hop& hop : route.hops) {
      EXPECT_EQ(hop.share, 1.0 / 3);
    }
    EXPECT_FALSE(route.by_port);
    router.route(key(2, 3), route);
    ASSERT_EQ(route.hops.size(), 2U);
    EXPECT_EQ(route.hops[0].share, 0.5);
    options.hash_nvlinks = true;
    Router hashed(maker.topology, options);
    hashed.route(key(0, 1), route);
    EXPECT_EQ(route.hops.size(), 2U);
    EXPECT_TRUE(route.by_port);
    hashed.route(key(2, 3), route);
    EXPECT_EQ(route.hops.size(), 1U);
  }
}

TEST(Routing, FatTreeHopCounts) {
  // k = 4: hosts 0-15 (2 an edge switch, 4 a pod), edges 16-23, aggregations 24-31, cores 32-35.
  const Topology topology = testing::fat_tree(4);
  Router router(topology);
  EXPECT_THAT(path(router, key(0, 1)), ElementsAre(0, 16, 1));
  const FlowKey in_pod = key(0, 2);
  EXPECT_THAT(path(router, in_pod), ElementsAre(0, 16, 24 + pick(in_pod, 16, 2), 17, 2));
  // Between pods: edge -> aggregation a of the pod -> core 2a + c -> aggregation a there -> edge.
  const FlowKey far = key(1, 15);
  const std::int32_t a = pick(far, 16, 2);
  const std::int32_t core = 32 + 2 * a + pick(far, static_cast<std::uint32_t>(24 + a), 2);
  EXPECT_THAT(path(router, far), ElementsAre(1, 16, 24 + a, core, 30 + a, 23, 15));
}

TEST(Routing, FullMeshIsOneHop) {
  FabricMaker maker;
  for (std::int32_t i = 0; i < 4; ++i) {
    maker.gpu(i);
  }
  for (std::int32_t i = 0; i < 4; ++i) {
    for (std::int32_t j = i + 1; j < 4; ++j) {
      maker.link(NodeId(i), NodeId(j));
    }
  }
  Router router(maker.topology);
  EXPECT_THAT(path(router, key(0, 3)), ElementsAre(0, 3));
  EXPECT_THAT(path(router, key(2, 1)), ElementsAre(2, 1));
}

TEST(Routing, GpusDoNotForward) {
  // A chain 0 - 1 - 2 of GPUs in three servers: neighbours reach each other, the ends do not.
  FabricMaker maker;
  for (std::int32_t i = 0; i < 3; ++i) {
    maker.gpu(i);
  }
  maker.link(NodeId(0), NodeId(1));
  maker.link(NodeId(1), NodeId(2));
  Router router(maker.topology);
  EXPECT_THAT(path(router, key(0, 1)), ElementsAre(0, 1));
  Route route;
  try {
    router.route(key(0, 2), route);
    FAIL() << "a route through a GPU";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("GPU node 0 (server 0)"));
    EXPECT_THAT(error.what(), HasSubstr("GPU node 2 (server 2)"));
  }
}

TEST(Routing, NvSwitchesDoNotForwardBetweenServers) {
  FabricMaker maker;
  maker.servers(2, 1);               // GPUs 0-1, NVSwitches 2-3
  maker.link(NodeId(2), NodeId(3));  // between servers: no path for GPUs
  Router router(maker.topology);
  Route route;
  EXPECT_THROW(router.route(key(0, 1), route), Error);
}

TEST(Routing, SeveralNvSwitchesShareByHash) {
  // One server of 2 GPUs, NVSwitches 2-5.
  FabricMaker maker;
  const NodeId a = maker.gpu(0), b = maker.gpu(0);
  for (int i = 0; i < 4; ++i) {
    const NodeId nvs = maker.nvswitch(0);
    maker.link(a, nvs);
    maker.link(b, nvs);
  }
  RouteOptions options;
  options.hash_nvlinks = true;
  Router router(maker.topology, options);
  for (std::uint16_t port = 10000; port < 10020; ++port) {
    const FlowKey k = key(0, 1, port);
    EXPECT_THAT(path(router, k), ElementsAre(0, 2 + pick(k, kHostHashSeed, 4), 1));
  }
}

TEST(Routing, TwoTiersOfNvSwitchesAreOneDomain) {
  // GPUs 0 and 1 on NVSwitches 2 and 3 of the same domain, joined by NVSwitch 4.
  FabricMaker maker;
  const NodeId a = maker.gpu(0), b = maker.gpu(0);
  const NodeId left = maker.nvswitch(0), right = maker.nvswitch(0), top = maker.nvswitch(0);
  maker.link(a, left);
  maker.link(b, right);
  maker.link(left, top);
  maker.link(right, top);
  Router router(maker.topology);
  EXPECT_THAT(path(router, key(0, 1)), ElementsAre(0, 2, 4, 3, 1));
}

TEST(Routing, NvSwitchIsAnEndPointInItsServer) {
  const Topology topology = two_servers();
  Router router(topology);
  EXPECT_THAT(path(router, key(2, 8)), ElementsAre(2, 8));
  EXPECT_THAT(path(router, key(8, 2)), ElementsAre(8, 2));
  Route route;
  EXPECT_THROW(router.route(key(2, 9), route), Error);  // another server's
  EXPECT_THROW(router.route(key(9, 2), route), Error);
}

TEST(Routing, ParallelLinksAreEqualPaths) {
  FabricMaker maker;
  const NodeId a = maker.gpu(0), b = maker.gpu(1), leaf = maker.leaf();
  const LinkId up = maker.link(a, leaf);
  const LinkId first = maker.link(b, leaf), second = maker.link(b, leaf);
  Router router(maker.topology);
  Route route;
  for (std::uint16_t port = 10000; port < 10010; ++port) {
    const FlowKey k = key(0, 1, port);
    router.route(k, route);
    const LinkId last = pick(k, 2, 2) == 0 ? first : second;
    ASSERT_EQ(route.hops.size(), 2U);
    EXPECT_EQ(route.hops[0].port, PortId(2 * up.value));
    EXPECT_EQ(route.hops[1].port, PortId(2 * last.value + 1));  // from the switch to the GPU
  }
}

TEST(Routing, SprayUsesEverySpineEvenly) {
  const Topology topology = two_servers();
  RouteOptions options;
  options.spray = true;
  Router router(topology, options);
  Route route;
  router.route(key(0, 5), route);
  // 0 -> leaf 10 whole, four spines up and four down a quarter each, leaf 11 -> 5 whole.
  ASSERT_EQ(route.hops.size(), 10U);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(route.hops[i].share, i == 0 || i == 9 ? 1 : 0.25) << i;
  }
  EXPECT_EQ(testing::source_of(topology, route.hops[0].port), NodeId(0));
  EXPECT_EQ(testing::destination_of(topology, route.hops[9].port), NodeId(5));
}

TEST(Routing, SprayWithRailAffinityStaysInOnePlane) {
  const Topology topology = testing::dual_plane(2, 2, 3);
  RouteOptions options;
  options.spray = options.rail_affinity = true;
  Router router(topology, options);
  FlowKey k = key(0, 3);
  k.channel = 1;
  Route route;
  router.route(k, route);
  ASSERT_EQ(route.hops.size(), 8U);  // NIC B, three up, three down, NIC B
  EXPECT_EQ(testing::destination_of(topology, route.hops[0].port), NodeId(8));
}

}  // namespace
}  // namespace lockstep::routing_test
