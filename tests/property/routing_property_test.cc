#include <algorithm>
#include <map>
#include <sys/resource.h>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "tests/support/allocations.h"
#include "tests/support/fabrics.h"
#include "topologies/routing.h"

namespace lockstep::routing_property_test {
namespace {

std::vector<Topology> fabrics() {
  return {testing::rail_optimised(6, 8, 16, 2), testing::dual_plane(5, 4, 6), testing::fat_tree(6)};
}

/// GPUs come first in these fabrics.
FlowKey random_key(std::int32_t gpu_count, Rng& rng) {
  const auto gpus = static_cast<std::uint64_t>(gpu_count);
  FlowKey key;
  key.source = NodeId(static_cast<std::size_t>(rng.below(gpus)));
  do {
    key.destination = NodeId(static_cast<std::size_t>(rng.below(gpus)));
  } while (key.destination == key.source);
  key.source_port = static_cast<std::uint16_t>(rng.between(10000, 65535));
  return key;
}

std::vector<std::int32_t> ports(const Route& route) {
  std::vector<std::int32_t> out;
  for (const Hop& hop : route.hops) {
    out.push_back(hop.port.value);
  }
  return out;
}

// Distances by breadth-first search over nodes, with the rule that only switches forward (these
// fabrics' servers are left aside by asking for pairs of different servers only).
std::int32_t hops_between(const Topology& topology, const Adjacency& adjacency, NodeId from,
                          NodeId to) {
  std::vector<std::int32_t> distance(topology.nodes.size(), -1);
  std::vector<NodeId> queue{from};
  distance[from.index()] = 0;
  for (std::size_t head = 0; head < queue.size(); ++head) {
    for (const Neighbour& next : adjacency.of(queue[head])) {
      if (distance[next.node.index()] >= 0) {
        continue;
      }
      distance[next.node.index()] = distance[queue[head].index()] + 1;
      if (topology.nodes[next.node.index()].kind == NodeKind::kSwitch) {
        queue.push_back(next.node);
      }
    }
  }
  return distance[to.index()];
}

TEST(RoutingProperty, RoutesSayWhetherPortsDecide) {
  Rng rng(9, "routing/by port");
  for (const Topology& topology : fabrics()) {
    Router router(topology);
    Route route, other;
    int fixed = 0;
    for (int i = 0; i < 100; ++i) {
      FlowKey key = random_key(topology.count(NodeKind::kGpu), rng);
      router.route(key, route);
      bool same = true;
      for (int draw = 0; draw < 64; ++draw) {
        key.source_port = static_cast<std::uint16_t>(10000 + draw);
        router.route(key, other);
        ASSERT_EQ(other.by_port, route.by_port);
        same = same && ports(other) == ports(route);
      }
      ASSERT_EQ(same, !route.by_port);
      fixed += same ? 1 : 0;
    }
    EXPECT_GT(fixed, 0);
    EXPECT_LT(fixed, 100);
  }
}

TEST(RoutingProperty, RoutesAreShortestChains) {
  Rng rng(1, "routing/shortest");
  for (const Topology& topology : fabrics()) {
    const std::int32_t gpus = topology.count(NodeKind::kGpu);
    Router router(topology);
    const Adjacency adjacency(topology);
    Route route;
    for (int i = 0; i < 300; ++i) {
      const FlowKey key = random_key(gpus, rng);
      router.route(key, route);
      NodeId at = key.source;
      for (const Hop& hop : route.hops) {
        ASSERT_EQ(testing::source_of(topology, hop.port), at);
        at = testing::destination_of(topology, hop.port);
      }
      ASSERT_EQ(at, key.destination);
      const bool inside = topology.nodes[key.source.index()].server ==
                          topology.nodes[key.destination.index()].server;
      const std::int32_t shortest =
          inside ? 2 : hops_between(topology, adjacency, key.source, key.destination);
      EXPECT_EQ(static_cast<std::int32_t>(route.hops.size()), shortest);
    }
  }
}

TEST(RoutingProperty, BothDirectionsAreEquallyLong) {
  Rng rng(2, "routing/reversal");
  for (const Topology& topology : fabrics()) {
    const std::int32_t gpus = topology.count(NodeKind::kGpu);
    for (const bool pxn : {false, true}) {
      RouteOptions options;
      options.pxn = pxn;
      Router router(topology, options);
      Route there, back;
      for (int i = 0; i < 300; ++i) {
        const FlowKey key = random_key(gpus, rng);
        FlowKey reverse = key;
        std::swap(reverse.source, reverse.destination);
        router.route(key, there);
        router.route(reverse, back);
        EXPECT_EQ(there.hops.size(), back.hops.size());
      }
    }
  }
}

TEST(RoutingProperty, OrderOfQuestionsDoesNotMatter) {
  for (const Topology& topology : fabrics()) {
    const std::int32_t gpus = topology.count(NodeKind::kGpu);
    Rng rng(3, "routing/determinism");
    Router one(topology), other(topology);
    std::vector<FlowKey> keys;
    std::vector<std::vector<std::int32_t>> forward;
    Route route;
    for (int i = 0; i < 200; ++i) {
      keys.push_back(random_key(gpus, rng));
      one.route(keys.back(), route);
      forward.push_back(ports(route));
    }
    for (std::size_t i = keys.size(); i-- > 0;) {
      other.route(keys[i], route);
      EXPECT_EQ(ports(route), forward[i]);
    }
  }
}

TEST(RoutingProperty, ATinyBudgetChangesNoRoute) {
  for (const Topology& topology : fabrics()) {
    const std::int32_t gpus = topology.count(NodeKind::kGpu);
    RouteOptions options;
    Router roomy(topology, options);
    options.table_budget = 1000;
    Router tight(topology, options);
    Rng rng(8, "routing/budget");
    Route one, other;
    for (int i = 0; i < 300; ++i) {
      const FlowKey key = random_key(gpus, rng);
      roomy.route(key, one);
      tight.route(key, other);
      ASSERT_EQ(ports(one), ports(other));
      ASSERT_LT(tight.table_bytes(), 5000U);  // the budget and what one route adds
    }
    EXPECT_GT(roomy.table_bytes(), 5000U);
  }
}

// At every node: what comes in (1 at the source) goes out (1 at the destination), and the parts
// that leave one node are equal.
TEST(RoutingProperty, SprayConservesShares) {
  Rng rng(4, "routing/spray");
  for (const Topology& topology : fabrics()) {
    const std::int32_t gpus = topology.count(NodeKind::kGpu);
    for (const bool pxn : {false, true}) {
      RouteOptions options;
      options.spray = true;
      options.pxn = pxn;
      Router router(topology, options);
      Route route;
      for (int i = 0; i < 300; ++i) {
        const FlowKey key = random_key(gpus, rng);
        router.route(key, route);
        std::map<std::int32_t, double> surplus, part;
        surplus[key.source.value] += 1;
        for (const Hop& hop : route.hops) {
          const std::int32_t from = testing::source_of(topology, hop.port).value;
          surplus[from] -= hop.share;
          surplus[testing::destination_of(topology, hop.port).value] += hop.share;
          EXPECT_NEAR(part.try_emplace(from, hop.share).first->second, hop.share, 1e-15);
        }
        for (const auto& [node, amount] : surplus) {
          EXPECT_NEAR(amount, node == key.destination.value ? 1 : 0, 1e-12);
        }
        std::vector<std::int32_t> used = ports(route);
        std::sort(used.begin(), used.end());
        EXPECT_EQ(std::adjacent_find(used.begin(), used.end()), used.end());  // each port once
      }
    }
  }
}

TEST(RoutingProperty, WarmRoutesAllocateNothing) {
  for (const Topology& topology : fabrics()) {
    const std::int32_t gpus = topology.count(NodeKind::kGpu);
    for (const bool spray : {false, true}) {
      RouteOptions options;
      options.spray = spray;
      options.pxn = true;
      Router router(topology, options);
      Route route;
      std::size_t before = 0;
      for (int pass = 0; pass < 2; ++pass) {
        Rng rng(6, "routing/allocations");
        before = testing::allocations();
        for (int i = 0; i < 500; ++i) {
          router.route(random_key(gpus, rng), route);
        }
      }
      EXPECT_EQ(testing::allocations(), before);
    }
  }
}

// A leaf has 16 spines; 16,000 flows of one pair differ in their source port only. Under an even
// hash, sum (observed - 1000)^2 / 1000 is chi-square with 15 degrees of freedom: above 44.3 with
// probability 1e-4.
TEST(RoutingProperty, EcmpSpreadsSourcePorts) {
  const Topology topology = testing::rail_optimised(2, 8, 16, 2);
  Router router(topology);
  std::map<std::int32_t, int> spines;
  FlowKey key;
  key.source = NodeId(0);
  key.destination = NodeId(9);
  Route route;
  for (int i = 0; i < 16000; ++i) {
    key.source_port = static_cast<std::uint16_t>(10000 + i);
    router.route(key, route);
    ASSERT_EQ(route.hops.size(), 4U);
    ++spines[testing::destination_of(topology, route.hops[1].port).value];
  }
  ASSERT_EQ(spines.size(), 16U);
  double chi_square = 0;
  for (const auto& [spine, count] : spines) {
    chi_square += (count - 1000.0) * (count - 1000.0) / 1000.0;
  }
  EXPECT_LT(chi_square, 44.3);
}

}  // namespace
}  // namespace lockstep::routing_property_test
