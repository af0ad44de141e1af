#include "topologies/orbits.h"

#include <set>

#include <gtest/gtest.h>

#include "topologies/topology_file.h"

namespace lockstep::orbits_test {
namespace {

Orbits orbits_of(const Topology& topology) {
  return find_orbits(topology, std::vector<std::uint64_t>(topology.nodes.size()), false);
}

std::size_t gpu_orbits(const Topology& topology, const Orbits& orbits) {
  std::set<std::int32_t> found;
  for (const NodeId gpu : topology.gpus()) {
    found.insert(orbits.node[gpu.index()]);
  }
  return found.size();
}

class AllAlike : public ::testing::TestWithParam<const char*> {};

TEST_P(AllAlike, GpusAreOneOrbit) {
  const Topology topology = topology_from(GetParam());
  const Orbits orbits = orbits_of(topology);
  EXPECT_EQ(gpu_orbits(topology, orbits), 1U);
  EXPECT_GT(orbits.generators, 0);
}

INSTANTIATE_TEST_SUITE_P(Fabrics, AllAlike,
                         ::testing::Values("Spectrum-X:g=96,npa=4,psn=6", "DCN+:g=64,npa=16,psn=4",
                                           "AlibabaHPN:g=64,npa=4,psn=8", "single-switch:g=48",
                                           "fat-tree:k=4,gps=1", "pods:g=64,npa=4,psn=4,csn=8"));

TEST(Orbits, RailsHaveFiveKindsOfPortsAndTheirWaysBack) {
  // GPU to NVSwitch, NVSwitch to GPU, GPU to leaf, leaf to GPU, leaf to spine, spine to leaf.
  const Topology topology = topology_from("Spectrum-X:g=64,npa=4,psn=8");
  const Orbits orbits = orbits_of(topology);
  EXPECT_EQ(orbits.port_size, (std::vector<std::int32_t>{64, 64, 64, 64, 128, 128}));
}

TEST(Orbits, ASlowLinkIsOnItsOwn) {
  Topology topology = topology_from("Spectrum-X:g=64,npa=4,psn=8");
  const std::size_t last = topology.links.size() - 1;
  LinkClass slow = topology.class_of(LinkId(last));
  slow.rate = Bandwidth::bits_per_second(1'000'000'000);
  topology.link_classes.push_back(slow);
  topology.links[last].link_class = static_cast<std::int32_t>(topology.link_classes.size()) - 1;
  const Orbits orbits = orbits_of(topology);
  const auto size = [&](std::size_t port) {
    return orbits.port_size[static_cast<std::size_t>(orbits.port[port])];
  };
  EXPECT_EQ(size(2 * last), 1);
  EXPECT_EQ(size(2 * last + 1), 1);
  // Ports of an orbit have one class of link and leave nodes of one orbit.
  for (std::size_t p = 0; p < orbits.port.size(); ++p) {
    for (std::size_t q = 0; q < p; ++q) {
      if (orbits.port[p] == orbits.port[q]) {
        const Link& a = topology.links[p / 2];
        const Link& b = topology.links[q / 2];
        ASSERT_EQ(a.link_class, b.link_class);
        ASSERT_EQ(orbits.node[(p % 2 == 0 ? a.a : a.b).index()],
                  orbits.node[(q % 2 == 0 ? b.a : b.b).index()]);
      }
    }
  }
}

TEST(Orbits, ColoursTellNodesApart) {
  const Topology topology = topology_from("single-switch:g=32");
  std::vector<std::uint64_t> colour(topology.nodes.size());
  colour[9] = 1;
  const Orbits orbits = find_orbits(topology, colour, false);
  for (const NodeId gpu : topology.gpus()) {
    EXPECT_EQ(orbits.node[gpu.index()] == orbits.node[9], gpu.value == 9);
  }
}

TEST(Orbits, ATreeOfUnequalLinksHasNone) {
  // Two servers of which one has a slower NIC on each GPU, by another factor each.
  Topology topology = topology_from("single-switch:g=8,gps=4");
  std::int64_t factor = 2;
  for (Link& link : topology.links) {
    if (topology.nodes[link.b.index()].kind == NodeKind::kSwitch) {
      LinkClass other = topology.link_classes[static_cast<std::size_t>(link.link_class)];
      other.rate = Bandwidth::bits_per_second(other.rate.bits_per_second() / factor++);
      topology.link_classes.push_back(other);
      link.link_class = static_cast<std::int32_t>(topology.link_classes.size()) - 1;
    }
  }
  EXPECT_EQ(gpu_orbits(topology, orbits_of(topology)), 8U);
}

}  // namespace
}  // namespace lockstep::orbits_test
