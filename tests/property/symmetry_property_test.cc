// Folding by symmetry and fast-forward change no time, to the picosecond: random graphs, graphs
// that are copies of a random graph with shared constraints, and real collectives on real fabrics.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"
#include "simulator/collectives/choose.h"
#include "simulator/network/flow/flow_engine.h"
#include "simulator/replay/flow_graph_run.h"
#include "simulator/replay/lone_collective.h"
#include "simulator/replay/symmetry.h"
#include "simulator/replay/symmetry_seed.h"
#include "topologies/topology_file.h"

namespace lockstep {
namespace {

struct Shape {
  int constraints, slots, copies;
};

/// A ring of slots with random sizes and routes, as `copies` equal rings that wait for themselves,
/// cross constraints of their own, and all cross one constraint together.
FlowGraph random_graph(Rng& rng, const Shape& shape) {
  FlowGraph graph;
  const auto constraints = static_cast<std::uint64_t>(shape.constraints);
  std::vector<double> capacity;
  for (std::uint64_t c = 0; c < constraints; ++c) {
    capacity.push_back(static_cast<double>(1 + rng.below(8)) * 1e10);
  }
  std::vector<FlowGraph::Slot> slots(static_cast<std::size_t>(shape.slots));
  std::vector<std::vector<std::int32_t>> routes(slots.size());
  const auto count = static_cast<std::int32_t>(2 + rng.below(60));
  for (std::size_t s = 0; s < slots.size(); ++s) {
    slots[s].bits = static_cast<double>(1000 + rng.below(100'000)) * 8;
    slots[s].latency = Time::ns(rng.between(1, 3000));
    slots[s].start_latency = slots[s].forward_latency = Time::ns(rng.between(0, 2000));
    slots[s].count = count;
    routes[s].push_back(static_cast<std::int32_t>(rng.below(constraints)));
    if (rng.below(2) == 0) {
      routes[s].push_back(
          static_cast<std::int32_t>((static_cast<std::uint64_t>(routes[s][0]) + 1) % constraints));
    }
  }
  const bool shared = rng.below(2) == 0;
  for (std::int32_t copy = 0; copy < shape.copies; ++copy) {
    graph.capacity.insert(graph.capacity.end(), capacity.begin(), capacity.end());
  }
  graph.capacity.push_back(shared ? 7e10 : 1e15);
  for (std::int32_t copy = 0; copy < shape.copies; ++copy) {
    for (std::size_t s = 0; s < slots.size(); ++s) {
      graph.slots.push_back(slots[s]);
      for (const std::int32_t c : routes[s]) {
        graph.term.push_back({ConstraintId(copy * shape.constraints + c), 1});
      }
      graph.term.push_back({ConstraintId(graph.capacity.size() - 1), 1});
      graph.term_begin.push_back(static_cast<std::int32_t>(graph.term.size()));
      const auto before = static_cast<std::int32_t>((s + slots.size() - 1) % slots.size());
      graph.wait.push_back({copy * shape.slots + before, 1});
      graph.wait_begin.push_back(static_cast<std::int32_t>(graph.wait.size()));
    }
  }
  return graph;
}

void expect_same_times(const FlowGraphTimes& a, const FlowGraphTimes& b,
                       const std::vector<std::int32_t>& class_of) {
  ASSERT_EQ(a.transfers, b.transfers);
  for (std::size_t i = 0; i < a.sent.size(); ++i) {
    const std::size_t j = class_of.empty() ? i : static_cast<std::size_t>(class_of[i]);
    ASSERT_EQ(a.sent[i], b.sent[j]) << "slot " << i;
    ASSERT_EQ(a.delivered[i], b.delivered[j]) << "slot " << i;
  }
}

TEST(SymmetryProperty, FoldedCopiesRunAsTheWhole) {
  Rng rng(1, "symmetry/copies");
  int folded = 0;
  for (int round = 0; round < 150; ++round) {
    const Shape shape{static_cast<int>(rng.between(1, 5)), static_cast<int>(rng.between(2, 6)),
                      static_cast<int>(rng.between(4, 9))};
    const FlowGraph graph = random_graph(rng, shape);
    const FlowGraphTimes full = run_flow_graph(graph, false);
    expect_same_times(full, run_flow_graph(graph, true), {});
    const auto partition = find_symmetry(graph, std::vector<std::uint64_t>(graph.slots.size()));
    ASSERT_TRUE(partition);
    ASSERT_TRUE(equitable(graph, *partition));
    ASSERT_LE(partition->slot_classes, shape.slots);
    const FlowGraph small = fold(graph, *partition);
    expect_same_times(full, run_flow_graph(small, false), partition->slot_class);
    expect_same_times(full, run_flow_graph(small, true), partition->slot_class);
    ++folded;
  }
  EXPECT_EQ(folded, 150);
}

TEST(SymmetryProperty, AStragglerSplitsOnlyWhatItReaches) {
  // Twelve copies that share nothing; one slot of one copy starts late. Its copy is on its own.
  Rng rng(2, "symmetry/straggler");
  FlowGraph graph = random_graph(rng, {2, 4, 12});
  graph.capacity.back() = 1e15;
  const std::vector<std::uint64_t> seed(graph.slots.size());
  const std::int32_t before = find_symmetry(graph, seed)->slot_classes;
  graph.slots[4 * 5 + 2].entry = Time::us(50);
  for (std::size_t s = 0; s < graph.slots.size(); ++s) {  // 1e15 never binds: leave it out
    graph.term[static_cast<std::size_t>(graph.term_begin[s + 1]) - 1].constraint =
        graph.term[static_cast<std::size_t>(graph.term_begin[s])].constraint;
  }
  const auto partition = find_symmetry(graph, seed);
  ASSERT_TRUE(partition);
  EXPECT_GT(partition->slot_classes, before);
  EXPECT_LE(partition->slot_classes, 2 * 4);
  expect_same_times(run_flow_graph(graph, false), run_flow_graph(fold(graph, *partition), true),
                    partition->slot_class);
}

TEST(SymmetryProperty, AWrongPartitionIsRefused) {
  Rng rng(3, "symmetry/wrong");
  const FlowGraph graph = random_graph(rng, {2, 4, 5});
  Partition partition = *find_symmetry(graph, std::vector<std::uint64_t>(graph.slots.size()));
  ASSERT_TRUE(equitable(graph, partition));
  ASSERT_GT(partition.slot_classes, 1);
  std::swap(partition.slot_class[0], partition.slot_class[1]);
  EXPECT_FALSE(equitable(graph, partition));
}

class OnFabrics : public ::testing::TestWithParam<const char*> {};

TEST_P(OnFabrics, EveryAlgorithmRunsAsInFull) {
  const Topology topology = topology_from(GetParam());
  const std::vector<NodeId> nodes = topology.gpus();
  for (const CollectiveAlgorithm* algorithm : collective_algorithms()) {
    for (const CommType op : algorithm->ops) {
      LoneCollective collective;
      CollectiveRequest request;
      request.op = op;
      request.bytes = Bytes(1 << 20);
      collective.nodes = nodes;
      if (algorithm->name == "send") {
        collective.nodes.resize(2);
      }
      const GroupShape shape = shape_of_nodes(topology, collective.nodes);
      try {
        collective.schedule = std::make_shared<const Schedule>(algorithm->build(request, shape));
      } catch (const Error&) {
        continue;  // an algorithm that this shape does not suit
      }
      collective.bytes = request.bytes;
      collective.send_latency = Time::us(1);
      LoneCollectiveResult result;
      try {
        result = run_on_flow_engine(collective, topology, {}, {.verify = true});
      } catch (const Error& error) {
        ASSERT_EQ(std::string(error.what()).find("with symmetry"), std::string::npos)
            << algorithm->name << ": " << error.what();
        continue;  // no switch that reduces, and the like
      }
      EXPECT_GT(result.end, Time()) << algorithm->name;
      // The same by the replay and the engine that co-simulates.
      FlowEngine engine(topology);
      EXPECT_EQ(run_lone_collective(collective, topology, engine).end, result.end)
          << algorithm->name << " " << name_of(op);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fabrics, OnFabrics,
                         ::testing::Values("Spectrum-X:g=64", "DCN+:g=24", "single-switch:g=48",
                                           "full-mesh:g=8"));

}  // namespace
}  // namespace lockstep
