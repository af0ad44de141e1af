#include <map>
#include <string>
#include <sys/resource.h>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "tests/support/fabrics.h"
#include "topologies/builder.h"
#include "topologies/routing.h"

namespace lockstep::routing_builders_test {
namespace {

FlowKey random_key(const std::vector<NodeId>& gpus, Rng& rng) {
  FlowKey key;
  key.source = gpus[rng.below(gpus.size())];
  do {
    key.destination = gpus[rng.below(gpus.size())];
  } while (key.destination == key.source);
  key.source_port = static_cast<std::uint16_t>(rng.between(10000, 65535));
  return key;
}

/// The whole flow leaves the source, arrives at the destination and is nowhere lost or doubled.
void expect_conserved(const Topology& topology, const FlowKey& key, const Route& route) {
  std::map<std::int32_t, double> surplus;
  surplus[key.source.value] += 1;
  for (const Hop& hop : route.hops) {
    surplus[testing::source_of(topology, hop.port).value] -= hop.share;
    surplus[testing::destination_of(topology, hop.port).value] += hop.share;
  }
  for (const auto& [node, amount] : surplus) {
    ASSERT_NEAR(amount, node == key.destination.value ? 1 : 0, 1e-12) << topology.name;
  }
}

TEST(RoutingBuilders, EveryTemplateRoutesRandomPairsInEveryMode) {
  for (const TopologyBuilder* builder : topology_builders()) {
    const Topology topology =
        build_topology(*builder, FlagValues::from_compact(*builder, "")).topology;
    const std::vector<NodeId> gpus = topology.gpus();
    ASSERT_GE(gpus.size(), 2U);
    for (int mode = 0; mode < 8; ++mode) {
      RouteOptions options;
      options.spray = (mode & 1) != 0;
      options.pxn = (mode & 2) != 0;
      options.rail_affinity = (mode & 4) != 0;
      Router router(topology, options);
      Rng rng(7, builder->name);
      Route route;
      for (int i = 0; i < 50; ++i) {
        const FlowKey key = random_key(gpus, rng);
        router.route(key, route);
        expect_conserved(topology, key, route);
      }
    }
  }
}

/// 200,000 random pairs; returns the mean number of hops.
double mean_hops(const Topology& topology, Router& router) {
  const std::vector<NodeId> gpus = topology.gpus();
  Rng rng(5, "routing/large");
  Route route;
  std::size_t hops = 0;
  for (int i = 0; i < 200'000; ++i) {
    router.route(random_key(gpus, rng), route);
    hops += route.hops.size();
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss, 2'000'000);  // KiB, so 2 GB for the whole process
  return static_cast<double>(hops) / 200'000;
}

Topology built(const std::string& name, const std::string& flags) {
  const TopologyBuilder& builder = *find_topology_builder(name);
  return build_topology(builder, FlagValues::from_compact(builder, flags)).topology;
}

TEST(RoutingLarge, SpectrumXOf65536Gpus) {
  const Topology topology = built("Spectrum-X", "g=65536,app=1024");
  Router router(topology);
  // 4 hops, but 2 for the one pair in 1024 that shares a leaf (or, rarer still, a server).
  EXPECT_NEAR(mean_hops(topology, router), 4 - 2.0 / 1024, 1e-3);
  // 1024 sets of leaves x 1088 switches x 6 bytes, plus the lists of next hops.
  EXPECT_LT(router.table_bytes(), std::size_t{16} << 20);
}

TEST(RoutingLarge, FatTreeOf65536Gpus) {
  const Topology topology = built("fat-tree", "k=64");
  Router router(topology);
  // 6 hops between pods; 1 pair in 64 is in one pod (4 hops).
  EXPECT_NEAR(mean_hops(topology, router), 6 - 2.0 / 64, 5e-3);
  // 2048 edges x 5120 switches x 6 bytes.
  EXPECT_LT(router.table_bytes(), std::size_t{128} << 20);
}

// Every router is a target of its own: 4096 x 4096 x 6 bytes.
TEST(RoutingLarge, TorusOf65536Gpus) {
  const Topology topology = built("torus", "s=16x16x16,gpr=16");
  Router router(topology);
  // A ring of 16 has a mean distance of 4; and a link at each end.
  EXPECT_NEAR(mean_hops(topology, router), 4 + 4 + 4 + 2, 0.02);
  EXPECT_LT(router.table_bytes(), std::size_t{128} << 20);
}

}  // namespace
}  // namespace lockstep::routing_builders_test
