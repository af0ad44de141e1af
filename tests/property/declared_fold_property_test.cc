// All-to-all from what is declared: folded without being written out it ends, slot by slot, when it
// does in full, on every fabric whose symmetry is found, for subsets of the GPUs, and with ranks
// that enter late; and it is not folded where nothing proves that it may be.
#include <cmath>
#include <functional>
#include <ostream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "simulator/collectives/choose.h"
#include "simulator/replay/declared_fold.h"
#include "topologies/topology_file.h"

namespace lockstep::declared_fold_property_test {
namespace {

const CollectiveAlgorithm& direct() { return algorithm_named("direct", CommType::kAllToAll); }

CollectiveRequest request_of(Bytes bytes) {
  CollectiveRequest request;
  request.op = CommType::kAllToAll;
  request.bytes = bytes;
  return request;
}

struct Case {
  const char* name;
  const char* topology;
  bool spray = true, pxn = false;
  std::function<void(Topology&, LoneCollective&)> change = [](Topology&, LoneCollective&) {};
  bool folds = true;
};

std::ostream& operator<<(std::ostream& out, const Case& test) { return out << test.name; }

struct Built {
  LoneCollective collective;
  CollectiveRequest request;
  GroupShape shape;
  DeclaredFold::Leaving leaving;
  std::function<std::shared_ptr<const Schedule>()> whole;
};

/// 1 MiB to each, so that the sizes are not whole packets.
void build(Built& built, const Topology& topology) {
  const auto n = static_cast<std::int32_t>(built.collective.nodes.size());
  built.shape = shape_of_nodes(topology, built.collective.nodes);
  built.request = request_of(Bytes(std::int64_t{n} << 20));
  built.collective.bytes = built.request.bytes;
  built.collective.send_latency = Time::us(1);
  built.leaving = [&built](std::int32_t rank) {
    return direct().build_leaving(built.request, built.shape, rank);
  };
  built.whole = [&built] {
    return std::make_shared<const Schedule>(direct().build(built.request, built.shape));
  };
}

class Declared : public ::testing::TestWithParam<Case> {};

TEST_P(Declared, RunsAsInFull) {
  const Case& test = GetParam();
  Topology topology = topology_from(test.topology);
  Built built;
  built.collective.nodes = topology.gpus();
  test.change(topology, built.collective);
  build(built, topology);
  FlowOptions flow;
  flow.routes.spray = test.spray;
  flow.routes.pxn = test.pxn;
  // `verify` compares every slot with its class.
  const auto result =
      run_declared(built.collective, built.leaving, built.whole, topology, flow, {.verify = true});
  ASSERT_EQ(result.has_value(), test.folds);
  if (result) {
    const auto n = std::ssize(built.collective.nodes);
    EXPECT_EQ(result->transfers, n * (n - 1));
    EXPECT_EQ(result->slots, n * (n - 1));
    EXPECT_LT(result->classes * 10, result->slots);
    built.collective.schedule = built.whole();
    EXPECT_EQ(run_on_flow_engine(built.collective, topology, flow, {.symmetry = false}).end,
              result->end);
  }
}

void first_half(Topology&, LoneCollective& collective) {
  collective.nodes.resize(collective.nodes.size() / 2);
}
void every_other(Topology&, LoneCollective& collective) {
  std::erase_if(collective.nodes, [](NodeId node) { return node.value % 2 == 1; });
}
void one_late_server(Topology&, LoneCollective& collective) {
  collective.entry.assign(collective.nodes.size(), Time());
  std::fill_n(collective.entry.begin() + 8, 8, Time::us(70));
}
void all_late_by_their_own(Topology&, LoneCollective& collective) {
  for (std::size_t rank = 0; rank < collective.nodes.size(); ++rank) {
    collective.entry.push_back(Time::ns(17) * static_cast<std::int64_t>(rank));
  }
}
/// The first leaf's link to the first spine is slower.
void one_slow_link(Topology& topology, LoneCollective&) {
  for (std::size_t i = topology.links.size(); i-- > 0;) {
    if (topology.nodes[topology.links[i].a.index()].kind == NodeKind::kSwitch) {
      LinkClass slow = topology.class_of(LinkId(i));
      slow.rate = Bandwidth::bits_per_second(slow.rate.bits_per_second() / 10);
      topology.link_classes.push_back(slow);
      topology.links[i].link_class = static_cast<std::int32_t>(topology.link_classes.size()) - 1;
      return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Fabrics, Declared,
    ::testing::Values(
        Case{"rails", "Spectrum-X:g=64,npa=4,psn=8"},
        Case{"rails_three_segments", "Spectrum-X:g=96,npa=4,psn=6"},
        Case{"pxn", "Spectrum-X:g=64,npa=4,psn=8", true, true},
        Case{"dual_tor", "AlibabaHPN:g=64,npa=4,psn=8"},
        Case{"whole_servers", "DCN+:g=64,npa=16,psn=4"}, Case{"fat_tree", "fat-tree:k=4,gps=1"},
        Case{"pods", "pods:g=64,pods=2,npa=4,psn=4,csn=8"},
        Case{"single_switch", "single-switch:g=48"},
        Case{"single_switch_hashed", "single-switch:g=48", false},
        Case{"mesh_hashed", "full-mesh:g=16", false},
        Case{"hashed", "Spectrum-X:g=64,npa=4,psn=8", false, false,
             [](Topology&, LoneCollective&) {}, false},
        Case{"half", "Spectrum-X:g=128,npa=4,psn=8", true, false, first_half},
        Case{"every_other", "Spectrum-X:g=128,npa=4,psn=8", true, false, every_other},
        Case{"late_server", "Spectrum-X:g=128,npa=8,psn=8", true, false, one_late_server},
        Case{"all_late", "Spectrum-X:g=64,npa=4,psn=8", true, false, all_late_by_their_own, false},
        Case{"slow_link", "Spectrum-X:g=256,npa=4,psn=4", true, false, one_slow_link}),
    [](const ::testing::TestParamInfo<Case>& at) { return at.param.name; });

TEST(DeclaredFoldProperty, WhatLeavesEachRankIsTheWholeSchedule) {
  for (const CollectiveAlgorithm* algorithm : collective_algorithms()) {
    for (const CommType op : algorithm->ops) {
      for (std::int32_t n = 2; algorithm->build_leaving != nullptr && n < 20; ++n) {
        CollectiveRequest request = request_of(Bytes(n) * 1000);
        request.op = op;
        std::vector<std::int32_t> servers(static_cast<std::size_t>(n));
        const GroupShape shape = group_shape(servers);
        const Schedule whole = algorithm->build(request, shape);
        ASSERT_TRUE(whole.wait.empty());
        std::vector<Slot> expected = whole.slots, slots;
        for (std::int32_t rank = 0; rank < n; ++rank) {
          const Schedule part = algorithm->build_leaving(request, shape, rank);
          ASSERT_EQ(part.chunk_bytes, whole.chunk_bytes);
          for (const Slot& slot : part.slots) {
            ASSERT_EQ(slot.source, rank);
            slots.push_back(slot);
          }
        }
        const auto order = [](const Slot& a, const Slot& b) {
          return std::pair(a.source, a.destination) < std::pair(b.source, b.destination);
        };
        std::ranges::sort(expected, order);
        std::ranges::sort(slots, order);
        ASSERT_EQ(slots, expected) << algorithm->name;
        // Every permutation of ranks keeps the slots: there is one of each pair, all alike.
        ASSERT_EQ(std::ssize(slots), std::int64_t{n} * (n - 1));
      }
    }
  }
}

TEST(DeclaredFoldProperty, TheLoadOfAPortIsThatOfTheWhole) {
  // Every binding port of the whole graph carries what its class says: the sum of the coefficients
  // over the ports is the same, class by class of capacity.
  const Topology topology = topology_from("Spectrum-X:g=64,npa=4,psn=8");
  Built built;
  built.collective.nodes = topology.gpus();
  build(built, topology);
  FlowOptions flow;
  flow.routes.spray = true;
  const auto fold = DeclaredFold::make(built.collective, built.leaving, topology, flow);
  ASSERT_TRUE(fold);
  std::int64_t copies = 0;
  for (const FlowGraph::Slot& slot : fold->graph().slots) {
    copies += slot.copies;
  }
  EXPECT_EQ(copies, 64 * 63);
  // The whole collective goes through 64 NICs evenly: 56 flows each.
  double nic = 0;
  for (std::size_t c = 0; c < fold->graph().slots.size(); ++c) {
    double largest = 0;
    for (const MaxMin::Term& term : fold->graph().terms(c)) {
      if (fold->graph().capacity[term.constraint.index()] == 400e9) {
        largest = std::max(largest, std::floor(term.coefficient));
      }
    }
    nic += largest;
  }
  EXPECT_EQ(nic, 56);
}

}  // namespace
}  // namespace lockstep::declared_fold_property_test
