// Random flags: counts follow the formulas, what is built is valid and survives both file formats,
// distances and cuts agree with the plainest way to find them.
#include <algorithm>
#include <deque>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "topologies/bisection.h"
#include "topologies/hops.h"
#include "topologies/simai_topology.h"
#include "topologies/topology_file.h"
#include "topologies/topology_json.h"

namespace lockstep::topology_property_test {
namespace {

constexpr int kRounds = 60;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

void expect_round_trips(const Topology& t) {
  EXPECT_TRUE(parse_topology(to_json_text(t), "t.json") == t);
  Topology back = parse_topology(to_simai_text(t), t.name);
  EXPECT_TRUE(back == t);
}

TEST(TopologyProperties, SimaiFabricsFollowTheirFormulas) {
  Rng rng(1, "topologies/simai");
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t gps = rng.between(1, 9);
    const std::int64_t servers = rng.between(1, 24);
    const std::int64_t g = gps * servers;
    const std::int64_t nsps = gps == 1 ? 0 : rng.between(1, 2);
    const std::int64_t npa = rng.between(1, 16);
    const std::int64_t psn = rng.between(2, 9);
    const bool ro = rng.below(2) == 1, dt = rng.below(2) == 1;
    const bool dp = ro && dt && rng.below(2) == 1;
    const std::string flags =
        fmt::format("plain:g={},gps={},nsps={},npa={},psn={},app=100000{}{}{}", g, gps, nsps, npa,
                    psn, ro ? ",ro" : "", dt ? ",dt" : "", dp ? ",dp" : "");
    SCOPED_TRACE(flags);
    const Topology t = topology_from(flags);
    const std::int64_t halves = dt ? 2 : 1;
    const std::int64_t asn = (ro ? ceil_div(g, gps * npa) * gps : ceil_div(g, npa)) * halves;
    EXPECT_EQ(t.count(NodeKind::kGpu), g);
    EXPECT_EQ(t.count(NodeKind::kNvSwitch), servers * nsps);
    EXPECT_EQ(t.count(NodeKind::kSwitch), asn + psn);
    EXPECT_EQ(static_cast<std::int64_t>(t.links.size()),
              (dp ? asn / 2 * psn : asn * psn) + g * halves + g * nsps);
    expect_round_trips(t);
  }
}

TEST(TopologyProperties, ToriHaveTheirDegree) {
  Rng rng(2, "topologies/torus");
  for (int round = 0; round < kRounds; ++round) {
    std::string shape;
    std::int64_t routers = 1, links_of_router = 0;
    for (std::int64_t d = rng.between(1, 3); d > 0; --d) {
      const std::int64_t size = rng.between(1, 6);
      shape += fmt::format("{}{}", shape.empty() ? "" : "x", size);
      routers *= size;
      links_of_router += size > 2 ? 2 : size - 1;
    }
    const std::int64_t p = rng.between(1, 4);
    const std::string flags = fmt::format("torus:shape={},gpus-per-router={},gps={}", shape, p, p);
    SCOPED_TRACE(flags);
    const Topology t = topology_from(flags);
    EXPECT_EQ(t.count(NodeKind::kGpu), routers * p);
    const Adjacency adjacency(t);
    for (std::size_t i = 0; i < t.nodes.size(); ++i) {
      if (t.nodes[i].kind == NodeKind::kSwitch) {
        EXPECT_EQ(static_cast<std::int64_t>(adjacency.of(NodeId(i)).size()), p + links_of_router);
      }
    }
    expect_round_trips(t);
  }
}

TEST(TopologyProperties, DragonfliesJoinEveryTwoGroupsAlike) {
  Rng rng(3, "topologies/dragonfly");
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t p = rng.between(1, 3), a = rng.between(1, 5), h = rng.between(1, 3);
    const std::int64_t g = rng.between(1, a * h + 1);
    const std::string flags =
        fmt::format("dragonfly:p={},a={},gl={},groups={},gps={}", p, a, h, g, p);
    SCOPED_TRACE(flags);
    const Topology t = topology_from(flags);
    const std::int64_t between = g == 1 ? 0 : a * h / (g - 1);
    EXPECT_EQ(static_cast<std::int64_t>(t.links.size()),
              2 * g * a * p + g * a * (a - 1) / 2 + g * (g - 1) / 2 * between);
    const Adjacency adjacency(t);
    for (std::size_t i = 0; i < t.nodes.size(); ++i) {
      if (t.nodes[i].kind == NodeKind::kSwitch) {  // no router has more than its h global links
        EXPECT_LE(static_cast<std::int64_t>(adjacency.of(NodeId(i)).size()), p + a - 1 + h);
      }
    }
    expect_round_trips(t);
  }
}

std::string random_small(Rng& rng) {
  switch (rng.below(6)) {
    case 0:
      return fmt::format("plain:g={},gps=2,npa={},psn={},ro={}", 2 * rng.between(1, 8),
                         rng.between(1, 4), rng.between(1, 3), rng.below(2) == 1);
    case 1:
      return fmt::format("plain:g={},gps=3,npa={},psn=2,ro,dt,app=1000,nsps={}",
                         3 * rng.between(1, 6), rng.between(1, 3), rng.between(1, 2));
    case 2:
      return fmt::format("torus:shape={}x{},gpus-per-router=2,gps=2", rng.between(1, 4),
                         rng.between(1, 4));
    case 3:
      return "dragonfly:p=2,a=3,gl=1,gps=2";
    case 4:
      return fmt::format("full-mesh:g={}", rng.between(1, 9));
    default:
      return "fat-tree:k=4,gps=2";
  }
}

/// Links between two GPUs by Router's rule, found by a search from each.
std::vector<double> plain_hops(const Topology& t) {
  const Adjacency adjacency(t);
  std::vector<double> pairs;
  const auto reach = [&](NodeId from, NodeKind over) {
    std::vector<int> distance(t.nodes.size(), -1);
    std::deque<NodeId> queue{from};
    distance[from.index()] = 0;
    while (!queue.empty()) {
      const NodeId at = queue.front();
      queue.pop_front();
      if (at != from && t.nodes[at.index()].kind == NodeKind::kGpu) {
        continue;
      }
      for (const Neighbour& n : adjacency.of(at)) {
        const NodeKind kind = t.nodes[n.node.index()].kind;
        if (distance[n.node.index()] < 0 && (kind == over || kind == NodeKind::kGpu)) {
          distance[n.node.index()] = distance[at.index()] + 1;
          queue.push_back(n.node);
        }
      }
    }
    return distance;
  };
  for (const NodeId a : t.gpus()) {
    const std::vector<int> nvlink = reach(a, NodeKind::kNvSwitch);
    const std::vector<int> network = reach(a, NodeKind::kSwitch);
    for (const NodeId b : t.gpus()) {
      if (a < b) {
        const bool inside = t.nodes[a.index()].server == t.nodes[b.index()].server;
        const int hops = inside && nvlink[b.index()] > 0 ? nvlink[b.index()] : network[b.index()];
        pairs.resize(std::max(pairs.size(), static_cast<std::size_t>(hops) + 1));
        ++pairs[static_cast<std::size_t>(hops)];
      }
    }
  }
  if (pairs.empty()) {
    pairs.resize(1);
  }
  return pairs;
}

TEST(TopologyProperties, HopsAgreeWithASearchFromEveryGpu) {
  Rng rng(4, "topologies/hops");
  for (int round = 0; round < kRounds; ++round) {
    const std::string flags = random_small(rng);
    SCOPED_TRACE(flags);
    const Topology t = topology_from(flags);
    EXPECT_EQ(count_hops(t).pairs, plain_hops(t));
  }
}

/// The least cut over all splits into halves of whole servers and all sides of every switch.
std::int64_t plain_bisection(const Topology& t, std::size_t servers) {
  std::vector<std::size_t> switches;
  for (std::size_t i = 0; i < t.nodes.size(); ++i) {
    if (t.nodes[i].kind == NodeKind::kSwitch) {
      switches.push_back(i);
    }
  }
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::uint32_t split = 0; split < 1U << servers; ++split) {
    if (static_cast<std::size_t>(__builtin_popcount(split)) != servers / 2) {
      continue;
    }
    for (std::uint32_t sides = 0; sides < 1U << switches.size(); ++sides) {
      std::vector<bool> first(t.nodes.size());
      for (std::size_t i = 0; i < t.nodes.size(); ++i) {
        if (t.nodes[i].kind != NodeKind::kSwitch) {
          first[i] = (split >> t.nodes[i].server & 1U) != 0;
        }
      }
      for (std::size_t i = 0; i < switches.size(); ++i) {
        first[switches[i]] = (sides >> i & 1U) != 0;
      }
      std::int64_t cut = 0;
      for (std::size_t i = 0; i < t.links.size(); ++i) {
        if (first[t.links[i].a.index()] != first[t.links[i].b.index()]) {
          cut += t.class_of(LinkId(i)).rate.bits_per_second();
        }
      }
      least = std::min(least, cut);
    }
  }
  return least;
}

TEST(TopologyProperties, AnExactBisectionIsTheLeastOfAllSplits) {
  Rng rng(5, "topologies/bisection");
  int exact = 0;
  for (int round = 0; round < 24; ++round) {
    const std::size_t servers = 2 * static_cast<std::size_t>(rng.between(1, 3));
    const bool ro = rng.below(2) == 1;
    const std::string flags = fmt::format("plain:g={},gps=2,npa={},psn={},ro={},apbw={}Gbps,dt={}",
                                          2 * servers, 2 * rng.between(1, 2), rng.between(1, 2), ro,
                                          100 * rng.between(1, 9), !ro && rng.below(2) == 1);
    const Topology t = topology_from(flags);
    if (t.count(NodeKind::kSwitch) > 9) {
      continue;
    }
    SCOPED_TRACE(flags);
    const Bisection found = bisect(t);
    const std::int64_t least = plain_bisection(t, servers);
    EXPECT_GE(found.bandwidth.bits_per_second(), least);
    if (found.exact) {
      EXPECT_EQ(found.bandwidth.bits_per_second(), least);
      ++exact;
    }
  }
  EXPECT_GE(exact, 6);
}

}  // namespace
}  // namespace lockstep::topology_property_test
