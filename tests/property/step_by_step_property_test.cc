// Collectives whose every transfer is a flow of its own, step by step: laying them out and finding
// their symmetry takes short cuts that change nothing.
#include <algorithm>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "simulator/collectives/choose.h"
#include "simulator/network/flow/flow_engine.h"
#include "simulator/replay/fabric_of.h"
#include "simulator/replay/flow_graph.h"
#include "simulator/replay/lone_collective.h"
#include "simulator/replay/refinement.h"
#include "simulator/replay/symmetry.h"
#include "tests/support/fabrics.h"
#include "topologies/topology_file.h"

namespace lockstep::step_by_step_property_test {
namespace {

std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }

/// Steps of `lanes` slots as copies of a few, each of which waits for some of the step before; in a
/// step of one copy a slot is late.
FlowGraph random_steps(Rng& rng, std::int32_t lanes, std::int32_t steps, std::int32_t copies) {
  std::vector<std::vector<std::int32_t>> waits(index(lanes));  // for lanes of the step before
  std::vector<FlowGraph::Slot> kinds(index(lanes));
  for (std::int32_t lane = 0; lane < lanes; ++lane) {
    kinds[index(lane)].bits = static_cast<double>(1 + rng.below(2)) * 8000;
    kinds[index(lane)].count = 1;
    for (std::uint64_t i = 0, count = 1 + rng.below(2); i < count; ++i) {
      waits[index(lane)].push_back(
          static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(lanes))));
    }
  }
  FlowGraph graph;
  graph.capacity.assign(index(copies * 2), 1e10);
  for (std::int32_t step = 0; step < steps; ++step) {
    for (std::int32_t copy = 0; copy < copies; ++copy) {
      for (std::int32_t lane = 0; lane < lanes; ++lane) {
        graph.slots.push_back(kinds[index(lane)]);
        graph.term.push_back({ConstraintId(2 * copy + lane % 2), 1});
        graph.term_begin.push_back(static_cast<std::int32_t>(graph.term.size()));
        for (const std::int32_t other : waits[index(lane)]) {
          if (step > 0) {
            graph.wait.push_back({((step - 1) * copies + copy) * lanes + other, 0});
          }
        }
        graph.wait_begin.push_back(static_cast<std::int32_t>(graph.wait.size()));
      }
    }
  }
  if (rng.below(2) == 0) {
    graph.slots[rng.below(graph.slots.size())].entry = Time::us(3);
  }
  return graph;
}

/// The same graph with its slots from the last to the first, so that they wait for later ones.
FlowGraph reversed(const FlowGraph& graph) {
  FlowGraph result;
  result.capacity = graph.capacity;
  const auto last = static_cast<std::int32_t>(graph.slots.size()) - 1;
  for (std::size_t i = graph.slots.size(); i-- > 0;) {
    result.slots.push_back(graph.slots[i]);
    for (const MaxMin::Term& term : graph.terms(i)) {
      result.term.push_back(term);
    }
    result.term_begin.push_back(static_cast<std::int32_t>(result.term.size()));
    for (const SlotWait& wait : graph.waits(i)) {
      result.wait.push_back({last - wait.slot, wait.lag});
    }
    result.wait_begin.push_back(static_cast<std::int32_t>(result.wait.size()));
  }
  return result;
}

TEST(StepByStep, TheSamePartitionIsFoundInOneRoundAsInMany) {
  Rng rng(6, "symmetry/steps");
  std::int32_t classes = 0, most = 0;
  for (int round = 0; round < 100; ++round) {
    const FlowGraph graph = random_steps(rng, static_cast<std::int32_t>(rng.between(2, 6)),
                                         static_cast<std::int32_t>(rng.between(2, 30)),
                                         static_cast<std::int32_t>(rng.between(2, 5)));
    const auto all = static_cast<std::int32_t>(graph.slots.size());
    const auto forwards = refine(graph, all), backwards = refine(reversed(graph), all);
    ASSERT_TRUE(forwards && backwards);
    ASSERT_TRUE(equitable(graph, *forwards));
    ASSERT_EQ(forwards->slot_classes, backwards->slot_classes);
    for (std::size_t i = 0; i < graph.slots.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const auto there = [&](std::size_t k) {
          return backwards->slot_class[graph.slots.size() - 1 - k];
        };
        ASSERT_EQ(forwards->slot_class[i] == forwards->slot_class[j], there(i) == there(j));
      }
    }
    classes += forwards->slot_classes;
    most = std::max(most, all);
  }
  EXPECT_GT(classes, 1000);
  EXPECT_GT(most, 400);
}

TEST(StepByStep, FlowsOfASlotAreLaidOutAlike) {
  const Topology topology = topology_from("Spectrum-X:g=64");
  FlowGraphBuilder::Setting setting;
  setting.nodes = topology.gpus();
  setting.send_latency = Time::us(6);
  CollectiveRequest request;
  request.op = CommType::kAllReduce;
  request.bytes = Bytes(64 << 20);
  request.channels = 4;
  request.flavour = CollectiveFlavour::kSimai;
  const Schedule schedule = build_schedule(algorithm_named("ring", request.op), request,
                                           shape_of_nodes(topology, setting.nodes));
  const std::size_t slots = schedule.slots.size();
  ASSERT_EQ(slots, 64U * 4U);
  ASSERT_EQ(schedule.connections_of_slot(), 126);

  FlowGraphBuilder together(topology, {}), apart(topology, {});
  together.add(schedule, setting);
  Schedule one = schedule;
  one.separate_flows = false;
  one.wait_begin = {0, 0};
  one.wait.clear();
  for (int k = 0; k < 126; ++k) {
    for (Slot slot : schedule.slots) {
      slot.count = 1;
      one.slots = {slot};
      apart.add(one, setting);
    }
  }
  const FlowGraph a = together.finish(), b = apart.finish();
  ASSERT_EQ(a.slots.size(), b.slots.size());
  ASSERT_EQ(a.capacity, b.capacity);
  ASSERT_EQ(a.term_begin, b.term_begin);
  for (std::size_t i = 0; i < a.slots.size(); ++i) {
    ASSERT_EQ(a.slots[i].count, 1);
    ASSERT_EQ(a.slots[i].bits, b.slots[i].bits) << i;
    ASSERT_EQ(a.slots[i].latency, b.slots[i].latency) << i;
    ASSERT_TRUE(std::ranges::equal(a.terms(i), b.terms(i), [](const auto& s, const auto& t) {
      return s.constraint == t.constraint && s.coefficient == t.coefficient;
    })) << i;
    // A step waits for the one before, by the ring's previous rank.
    ASSERT_EQ(a.waits(i).size(), i < slots ? 0U : 1U);
    for (const SlotWait& wait : a.waits(i)) {
      ASSERT_EQ(wait.lag, 0);
      ASSERT_EQ(static_cast<std::size_t>(wait.slot) / slots, i / slots - 1);
      ASSERT_EQ(schedule.slots[static_cast<std::size_t>(wait.slot) % slots].destination,
                schedule.slots[i % slots].source);
    }
  }
}

/// A FlowEngine whose connections each carry one message of a collective.
class OneEach final : public NetworkEngine {
 public:
  explicit OneEach(FlowEngine& engine) : engine_(engine) {}
  Time now() const override { return engine_.now(); }
  ConnectionId connect(NodeId source, NodeId destination, std::int32_t channel) override {
    return engine_.connect(source, destination, channel);
  }
  void start(ConnectionId connection, Bytes bytes, Time when, std::uint64_t tag) override {
    engine_.start(connection, bytes, when, tag);
  }
  Time advance(Time limit, std::vector<NetworkEvent>& events) override {
    return engine_.advance(limit, events);
  }
  std::vector<PortUse> port_use() const override { return engine_.port_use(); }
  bool has_queues() const override { return engine_.has_queues(); }

 private:
  FlowEngine& engine_;
};

// A connection that draws its ports ahead, in turn with the others, has those that as many
// connections would have.
TEST(StepByStep, PortsAreDrawnInTurn) {
  const Topology topology = testing::rail_optimised(4, 4, 2, 4);
  const FlowOptions options = simai_flow_options();
  for (const CommType op : {CommType::kAllReduce, CommType::kAllGather}) {
    for (const bool relays : {false, true}) {
      LoneCollective collective;
      collective.nodes = topology.gpus();
      collective.bytes = Bytes(16 << 20);
      collective.send_latency = Time::us(6);
      CollectiveRequest request;
      request.op = op;
      request.bytes = collective.bytes;
      request.channels = 4;
      request.flavour = CollectiveFlavour::kSimai;
      request.relays = relays;
      collective.schedule = std::make_shared<const Schedule>(build_schedule(
          algorithm_named("ring", op), request, shape_of_nodes(topology, collective.nodes)));
      FlowEngine few(topology, options), many(topology, options);
      few.meet_by_packets();
      many.meet_by_packets();
      OneEach each(many);
      const LoneCollectiveResult a = run_lone_collective(collective, topology, few),
                                 b = run_lone_collective(collective, topology, each);
      EXPECT_EQ(a.transfers, collective.schedule->transfer_count());
      EXPECT_EQ(a.transfers, b.transfers);
      EXPECT_EQ(a.end, b.end);
      EXPECT_GT(a.end, Time());
      const std::vector<PortUse> x = few.port_use(), y = many.port_use();
      ASSERT_EQ(x.size(), y.size());
      for (std::size_t port = 0; port < x.size(); ++port) {
        EXPECT_EQ(x[port].bytes, y[port].bytes) << port;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::step_by_step_property_test
