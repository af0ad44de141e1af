#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "topologies/describe.h"
#include "topologies/topology_file.h"

namespace lockstep::topology_description_test {
namespace {

double pairs(const TopologyDescription& d, std::size_t hops) {
  return hops < d.hops.pairs.size() ? d.hops.pairs[hops] : 0;
}

TEST(DescribeTopology, TwoServersOnRails) {
  // 16 GPUs: within a server 2 * C(8,2) = 56 pairs two hops apart; of the 64 pairs between servers
  // 8 share a rail (2 hops: GPU, leaf, GPU), 56 go over a spine (4 hops).
  const TopologyDescription d = describe(topology_from("Spectrum-X:g=16"));
  EXPECT_EQ(pairs(d, 2), 56 + 8);
  EXPECT_EQ(pairs(d, 4), 56);
  EXPECT_EQ(d.hops.diameter, 4);
  EXPECT_DOUBLE_EQ(d.hops.mean, (2.0 * 64 + 4 * 56) / 120);
  EXPECT_FALSE(d.hops.sampled);
  // Eight GPUs on each side, one NIC each.
  ASSERT_TRUE(d.bisection);
  EXPECT_EQ(d.bisection->bandwidth, Bandwidth::gbps(8 * 400));
  EXPECT_TRUE(d.bisection->exact);
  // A leaf has 2 GPU ports and 64 spine ports.
  ASSERT_EQ(d.tiers.size(), 2U);
  EXPECT_DOUBLE_EQ(*d.tiers[0].most_oversubscription, 2.0 / 64);
  EXPECT_FALSE(d.tiers[1].most_oversubscription);
  ASSERT_EQ(d.link_groups.size(), 3U);
  EXPECT_EQ(d.link_groups[0].from, "GPU");
  EXPECT_EQ(d.link_groups[0].to, "NVSwitch");
  EXPECT_EQ(d.link_groups[2].count, 512);
  ASSERT_EQ(d.servers.size(), 1U);
  EXPECT_EQ(d.servers[0].count, 2);
}

TEST(DescribeTopology, AnOversubscribedFabricIsCutAtItsUplinks) {
  // DCN+ of 512 GPUs: 8 leaves with 64 GPUs and 8 uplinks each: 8 : 1. Half the leaves on each
  // side: 4 * 8 uplinks of 400 Gbps.
  const TopologyDescription d = describe(topology_from("DCN+"));
  EXPECT_EQ(d.bisection->bandwidth, Bandwidth::gbps(4 * 8 * 400));
  EXPECT_TRUE(d.bisection->exact);
  EXPECT_DOUBLE_EQ(*d.tiers[0].least_oversubscription, 8);
}

TEST(DescribeTopology, FatTreesAndToriHaveTheirTextbookBisection) {
  // k-ary fat tree: k^3/8 links. k = 8: 64.
  EXPECT_EQ(bisect(topology_from("fat-tree:k=8")).bandwidth, Bandwidth::gbps(64 * 400));
  // An 8 x 4 torus is cut across its longer dimension: 2 * 4 links, whichever comes first.
  EXPECT_EQ(bisect(topology_from("torus:shape=8x4")).bandwidth, Bandwidth::gbps(8 * 400));
  EXPECT_EQ(bisect(topology_from("torus:shape=4x8")).bandwidth, Bandwidth::gbps(8 * 400));
  // 4 x 4 x 4: 2 * 16 links.
  EXPECT_EQ(bisect(topology_from("torus")).bandwidth, Bandwidth::gbps(32 * 400));
  // 8 GPUs each linked to 7: 4 * 4 links cross.
  const Bisection mesh = bisect(topology_from("full-mesh"));
  EXPECT_EQ(mesh.bandwidth, Bandwidth::gbps(16 * 400));
  EXPECT_TRUE(mesh.exact);
  EXPECT_EQ(bisect(topology_from("single-switch")).bandwidth, Bandwidth::gbps(8 * 400));
}

TEST(DescribeTopology, OneServerIsCutAtItsNvswitchOrNics) {
  // 8 GPUs: four NVLink ports, and four NIC ports of the rails' leaves (one spine joins them).
  EXPECT_EQ(bisect(topology_from("Spectrum-X:g=8,psn=1")).bandwidth,
            Bandwidth::gbps(4 * 2880 + 4 * 400));
}

TEST(DescribeTopology, DistancesInATorus) {
  // A ring of 4 routers with one GPU each: 4 pairs of neighbours (3 hops), 2 opposite (4 hops).
  const TopologyDescription d =
      describe(topology_from("torus:shape=4,gpus-per-router=1,gps=1,nsps=0"));
  EXPECT_EQ(pairs(d, 3), 4);
  EXPECT_EQ(pairs(d, 4), 2);
  EXPECT_DOUBLE_EQ(d.tiers[0].side_Bps, 4 * 2 * 50e9);
}

TEST(DescribeTopology, NvlinkIsTakenInsideAServerEvenIfTheNetworkIsThere) {
  // 16 GPUs in two servers on one switch: every pair is two hops apart either way.
  const TopologyDescription d = describe(topology_from("single-switch"));
  EXPECT_EQ(pairs(d, 2), 120);
  // In a full mesh every pair is one hop apart.
  EXPECT_EQ(pairs(describe(topology_from("full-mesh")), 1), 28);
}

TEST(DescribeTopology, ASampleAgreesWithTheWhole) {
  // Every router of a torus sees the same distances, so that any sample is exact.
  const Topology t = topology_from("torus:shape=6x6");
  const HopCounts all = count_hops(t);
  const HopCounts some = count_hops(t, 2000);
  EXPECT_FALSE(all.sampled);
  EXPECT_TRUE(some.sampled);
  ASSERT_EQ(all.pairs.size(), some.pairs.size());
  for (std::size_t h = 0; h < all.pairs.size(); ++h) {
    EXPECT_NEAR(all.pairs[h], some.pairs[h], 1e-6 * all.pairs[h]) << h;
  }
}

TEST(DescribeTopology, JsonHasUnitsInItsKeys) {
  const TopologyDescription d = describe(topology_from("Spectrum-X:g=16"));
  const Json json = parse_json(to_json_text(d), "d.json");
  EXPECT_EQ(json["schema"], "lockstep-topology-description/1");
  EXPECT_EQ(json["gpus"], 16);
  EXPECT_EQ(json["bisection"]["bandwidth_Bps"], 400e9);
  EXPECT_EQ(json["link_groups"][0]["delay_s"], 25e-9);
  EXPECT_EQ(json["hops"]["pairs"][1]["hops"], 4);
  EXPECT_EQ(json["hops"]["pairs"][1]["pairs"], 56);
  EXPECT_TRUE(json["tiers"][1]["oversubscription"].is_null());
}

TEST(DescribeTopology, ASingleGpuHasNoHalves) {
  const TopologyDescription d = describe(topology_from("full-mesh:g=1"));
  EXPECT_FALSE(d.bisection);
  EXPECT_EQ(d.hops.diameter, 0);
  EXPECT_THAT(to_text(d), ::testing::HasSubstr("1 GPU"));
  EXPECT_NO_THROW(parse_json(to_json_text(d), "d.json"));
}

}  // namespace
}  // namespace lockstep::topology_description_test
