// Folding by symmetry and fast-forward change no time, to the picosecond: random graphs, graphs
// that are copies of a random graph with shared constraints, and real collectives on real fabrics.
#include <algorithm>
#include <map>
#include <tuple>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"
#include "simulator/collectives/choose.h"
#include "simulator/collectives/tune.h"
#include "simulator/network/flow/flow_engine.h"
#include "simulator/replay/fabric_of.h"
#include "simulator/replay/flow_graph_run.h"
#include "simulator/replay/lone_collective.h"
#include "simulator/replay/recurrence_run.h"
#include "simulator/replay/refinement.h"
#include "simulator/replay/steady_end.h"
#include "simulator/replay/symmetry.h"
#include "topologies/topology_file.h"

namespace lockstep::symmetry_property_test {
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
    const auto partition = find_symmetry(graph);
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
  const std::int32_t before = find_symmetry(graph)->slot_classes;
  graph.slots[4 * 5 + 2].entry = Time::us(50);
  for (std::size_t s = 0; s < graph.slots.size(); ++s) {  // 1e15 never binds: leave it out
    graph.term[static_cast<std::size_t>(graph.term_begin[s + 1]) - 1].constraint =
        graph.term[static_cast<std::size_t>(graph.term_begin[s])].constraint;
  }
  const auto partition = find_symmetry(graph);
  ASSERT_TRUE(partition);
  EXPECT_GT(partition->slot_classes, before);
  EXPECT_LE(partition->slot_classes, 2 * 4);
  expect_same_times(run_flow_graph(graph, false), run_flow_graph(fold(graph, *partition), true),
                    partition->slot_class);
}

TEST(SymmetryProperty, AWrongPartitionIsRefused) {
  Rng rng(3, "symmetry/wrong");
  const FlowGraph graph = random_graph(rng, {2, 4, 5});
  Partition partition = *find_symmetry(graph);
  ASSERT_TRUE(equitable(graph, partition));
  ASSERT_GT(partition.slot_classes, 1);
  std::swap(partition.slot_class[0], partition.slot_class[1]);
  EXPECT_FALSE(equitable(graph, partition));
}

/// Slots on constraints of their own, that wait for earlier slots' same transfer and for anyone's
/// earlier ones.
FlowGraph lonely_graph(Rng& rng) {
  FlowGraph graph;
  const auto slots = static_cast<std::int32_t>(rng.between(1, 12));
  const bool equal = rng.below(2) == 0;
  const auto count = static_cast<std::int32_t>(rng.between(1, 400));
  const std::int64_t grain = rng.below(2) == 0 ? 1 : 1000;  // coarse numbers repeat sooner
  for (std::int32_t i = 0; i < slots; ++i) {
    FlowGraph::Slot& slot = graph.slots.emplace_back();
    slot.bits = static_cast<double>(rng.between(1, 200)) * 4000;
    slot.latency = Time::ns(rng.between(0, 3) * grain);
    slot.start_latency = Time::ns(rng.between(0, 5) * grain);
    slot.forward_latency = Time::ns(rng.between(0, 5) * grain);
    slot.entry = rng.below(4) == 0 ? Time::ns(rng.between(0, 20'000)) : Time();
    slot.count = equal ? count : static_cast<std::int32_t>(rng.between(1, 400));
    for (std::int64_t terms = rng.between(1, 2); terms > 0; --terms) {
      graph.term.push_back(
          {ConstraintId(graph.capacity.size()), static_cast<double>(rng.between(1, 3))});
      graph.capacity.push_back(static_cast<double>(rng.between(1, 9)) * 1e10);
    }
    graph.term_begin.push_back(static_cast<std::int32_t>(graph.term.size()));
    for (std::int64_t waits = rng.between(0, 2); waits > 0; --waits) {
      const auto other = static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(slots)));
      const auto lag = static_cast<std::int32_t>(rng.between(other < i ? 0 : 1, 9));
      graph.wait.push_back({other, lag});
    }
    graph.wait_begin.push_back(static_cast<std::int32_t>(graph.wait.size()));
  }
  return graph;
}

TEST(SymmetryProperty, ARecurrenceRunsAsTheEvents) {
  Rng rng(5, "symmetry/recurrence");
  std::int64_t transfers = 0, simulated = 0;
  for (int round = 0; round < 400; ++round) {
    const FlowGraph graph = lonely_graph(rng);
    const auto times = run_as_recurrence(graph);
    ASSERT_TRUE(times);
    expect_same_times(run_flow_graph(graph, false), *times, {});
    transfers += times->transfers;
    simulated += times->simulated;
  }
  EXPECT_LT(simulated * 10, transfers * 9);  // some of it is skipped
}

TEST(SymmetryProperty, WhatIsNoRecurrenceIsLeftToTheEvents) {
  Rng rng(6, "symmetry/no recurrence");
  FlowGraph graph = lonely_graph(rng);
  while (graph.slots.size() < 2) {
    graph = lonely_graph(rng);
  }
  ASSERT_TRUE(run_as_recurrence(graph));
  const auto without = [&](auto change) {
    FlowGraph other = graph;
    change(other);
    return run_as_recurrence(other);
  };
  EXPECT_FALSE(without([](FlowGraph& g) { g.term.back().constraint = g.term.front().constraint; }));
  EXPECT_FALSE(without([](FlowGraph& g) { g.slots[0].bits = 0; }));
  EXPECT_FALSE(without([](FlowGraph& g) {
    g.wait.push_back({0, -1});
    ++g.wait_begin.back();
  }));
  EXPECT_FALSE(without([](FlowGraph& g) {  // waits for itself
    g.wait.push_back({static_cast<std::int32_t>(g.slots.size()) - 1, 0});
    ++g.wait_begin.back();
  }));
  EXPECT_FALSE(without([](FlowGraph& g) {  // months
    g.slots[0].bits = 1e15;
    g.slots[0].count = 1000;
  }));
}

/// The coarsest equitable partition by definition: slots are told apart by all that they see,
/// written out, until nothing changes. Returns how many classes of slots there are.
std::size_t classes_by_definition(const FlowGraph& graph) {
  using Seen = std::vector<std::tuple<int, std::int64_t, double>>;
  std::vector<std::int64_t> slot(graph.slots.size()), constraint(graph.capacity.size());
  std::vector<std::int64_t> place(graph.place_colour.size());
  std::size_t count = 0;
  while (true) {
    std::map<std::tuple<std::int64_t, double, Seen>, std::int64_t> constraints;
    std::map<std::tuple<std::int64_t, std::uint64_t, Seen>, std::int64_t> places;
    std::vector<Seen> crossed(constraint.size()), seen(slot.size()), about(place.size());
    for (std::size_t i = 0; i < slot.size(); ++i) {
      for (const MaxMin::Term& term : graph.terms(i)) {
        crossed[term.constraint.index()].emplace_back(0, slot[i], term.coefficient);
        seen[i].emplace_back(0, constraint[term.constraint.index()], term.coefficient);
      }
      for (const SlotWait& wait : graph.waits(i)) {
        seen[i].emplace_back(1, slot[static_cast<std::size_t>(wait.slot)], wait.lag);
      }
      const FlowGraph::Slot& s = graph.slots[i];
      seen[i].emplace_back(2, slot[i], s.bits);
      for (const auto& [end, way] : {std::pair(s.source, 3), std::pair(s.destination, 4)}) {
        if (end >= 0) {
          seen[i].emplace_back(way, place[static_cast<std::size_t>(end)], s.kind);
          about[static_cast<std::size_t>(end)].emplace_back(way, slot[i], 0);
        }
      }
      for (const Time time : {s.latency, s.start_latency, s.forward_latency, s.entry}) {
        seen[i].emplace_back(static_cast<int>(seen[i].size()) + 10, time.count_ps(), s.count);
      }
      std::ranges::sort(seen[i]);
    }
    for (std::size_t c = 0; c < constraint.size(); ++c) {
      std::ranges::sort(crossed[c]);
      constraint[c] =
          constraints
              .try_emplace({constraint[c], graph.capacity[c], crossed[c]}, std::ssize(constraints))
              .first->second;
    }
    for (std::size_t p = 0; p < place.size(); ++p) {
      std::ranges::sort(about[p]);
      place[p] = places.try_emplace({place[p], graph.place_colour[p], about[p]}, std::ssize(places))
                     .first->second;
    }
    std::map<Seen, std::int64_t> slots;
    for (std::size_t i = 0; i < slot.size(); ++i) {
      slot[i] = slots.try_emplace(seen[i], std::ssize(slots)).first->second;
    }
    const std::size_t now = slots.size() + constraints.size() + places.size();
    if (count == now) {
      return slots.size();
    }
    count = now;
  }
}

TEST(SymmetryProperty, TheCoarsestPartitionIsFound) {
  Rng rng(4, "symmetry/coarsest");
  for (int round = 0; round < 60; ++round) {
    FlowGraph graph =
        random_graph(rng, {static_cast<int>(rng.between(1, 5)), static_cast<int>(rng.between(2, 9)),
                           static_cast<int>(rng.between(4, 9))});
    if (round % 2 == 0) {  // copies become unlike one another, a little
      graph.slots[rng.below(graph.slots.size())].entry = Time::us(3);
    }
    const auto partition = refine(graph, static_cast<std::int32_t>(graph.slots.size()));
    ASSERT_TRUE(partition);
    EXPECT_TRUE(equitable(graph, *partition));
    EXPECT_EQ(static_cast<std::size_t>(partition->slot_classes), classes_by_definition(graph));
  }
}

/// Some slots among a few places, as `copies` alike; in every other copy what goes to two places
/// that are alike goes to one of them twice where that leaves all alike.
FlowGraph random_places(Rng& rng, std::int32_t places, std::int32_t copies) {
  struct Sent {
    std::int32_t from, to, kind;
    bool crosses;
  };
  std::vector<Sent> sent;
  for (std::uint64_t i = 0, count = 2 + rng.below(8); i < count; ++i) {
    const auto from = static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(places)));
    sent.push_back({from, static_cast<std::int32_t>((from + rng.between(1, places - 1)) % places),
                    static_cast<std::int32_t>(rng.below(2)), rng.below(2) == 0});
  }
  FlowGraph graph;
  for (std::int32_t copy = 0; copy < copies; ++copy) {
    const auto constraint = static_cast<std::int32_t>(graph.capacity.size());
    const std::int32_t first = copy * places * 2;
    graph.capacity.push_back(1e10);
    graph.place_colour.resize(graph.place_colour.size() + static_cast<std::size_t>(2 * places), 7);
    const auto add = [&](const Sent& what, std::int32_t from, std::int32_t to) {
      FlowGraph::Slot& slot = graph.slots.emplace_back();
      slot.bits = 8000;
      slot.count = 1;
      slot.kind = what.kind;
      slot.source = first + from;
      slot.destination = first + to;
      if (what.crosses) {
        graph.term.push_back({ConstraintId(constraint), 1});
      }
      graph.term_begin.push_back(static_cast<std::int32_t>(graph.term.size()));
      graph.wait_begin.push_back(0);
    };
    for (const Sent& what : sent) {  // between two halves, straight on or crosswise
      for (const std::int32_t half : {0, places}) {
        add(what, what.from + half, what.to + half);
        add(what, what.from + half, what.to + (copy % 2 == 0 ? half : places - half));
      }
    }
  }
  return graph;
}

TEST(SymmetryProperty, TheCoarsestPartitionOfSlotsBetweenPlacesIsFound) {
  Rng rng(5, "symmetry/places");
  int classes = 0;
  for (int round = 0; round < 100; ++round) {
    FlowGraph graph = random_places(rng, static_cast<std::int32_t>(rng.between(2, 6)),
                                    static_cast<std::int32_t>(rng.between(2, 7)));
    if (round % 2 == 0) {  // one place is not like the others
      graph.place_colour[rng.below(graph.place_colour.size())] = 8;
    }
    const auto partition = refine(graph, static_cast<std::int32_t>(graph.slots.size()));
    ASSERT_TRUE(partition);
    EXPECT_TRUE(equitable(graph, *partition));
    EXPECT_EQ(static_cast<std::size_t>(partition->slot_classes), classes_by_definition(graph));
    classes += partition->slot_classes;
  }
  EXPECT_GT(classes, 200);
}

/// Slots and classes of a collective on the flow engine, with every transfer's end compared to the
/// full run's.
LoneCollectiveResult verified(const char* fabric, const char* algorithm, std::int32_t channels,
                              const FlowOptions& flow) {
  const Topology topology = topology_from(fabric);
  LoneCollective collective;
  collective.nodes = topology.gpus();
  CollectiveRequest request;
  request.op = CommType::kAllReduce;
  request.bytes = collective.bytes = Bytes(16 << 20);
  request.channels = channels;
  collective.schedule = std::make_shared<const Schedule>(build_schedule(
      algorithm_named(algorithm, request.op), request, shape_of_nodes(topology, collective.nodes)));
  collective.send_latency = Time::us(2);
  return run_on_flow_engine(collective, topology, flow, {.verify = true});
}

TEST(SymmetryProperty, ChannelsThatTurnAndTreesThatMirrorAreAlike) {
  FlowOptions spray;
  spray.routes.spray = true;
  // A double binary tree on a channel and tree for each of 8 rails: turning the rails by one maps
  // the channels onto each other, and the mirror image of the servers one tree onto the other.
  const LoneCollectiveResult tree = verified("Spectrum-X:g=256", "tree", 16, spray);
  EXPECT_EQ(tree.classes * 16, tree.slots);
  const LoneCollectiveResult half = verified("Spectrum-X:g=256", "tree", 8, spray);
  EXPECT_EQ(half.classes * 2, half.slots);  // four of eight turns: only the mirror is left
  const LoneCollectiveResult ring = verified("Spectrum-X:g=256", "ring", 8, {});
  EXPECT_EQ(ring.classes * 8 * 16, ring.slots);  // rails, and every second server
}

/// Classes of ranks in a small collective over all GPUs of a fabric.
std::int32_t classes_of_ranks(const char* fabric, CommType op, std::int64_t bytes,
                              bool kept_alike) {
  const Topology topology = topology_from(fabric);
  FlowOptions flow;
  flow.routes.spray = true;
  FlowGraphBuilder::Setting setting;
  setting.nodes = topology.gpus();
  for (std::int32_t rank = 0; rank < std::ssize(setting.nodes); ++rank) {
    setting.places.push_back(rank);
  }
  const GroupShape shape = shape_of_nodes(topology, setting.nodes);
  TunedRequest tuned =
      tune({.op = op, .bytes = Bytes(bytes)}, shape, fabric_of(topology, setting.nodes));
  if (kept_alike) {
    keep_ranks_alike(tuned, shape);
  }
  FlowGraphBuilder builder(topology, flow);
  builder.add(build_schedule(*tuned.algorithm, tuned.request, shape), setting);
  FlowGraph graph = builder.finish();
  graph.place_colour.assign(setting.nodes.size(), 0);
  const auto partition = refine(graph, static_cast<std::int32_t>(graph.slots.size()));
  return partition ? partition->place_classes : -1;
}

TEST(SymmetryProperty, SmallCollectivesKeepRanksAlike) {
  for (const char* fabric : {"Spectrum-X:g=32,gps=16", "Spectrum-X:g=64,gps=8"}) {
    SCOPED_TRACE(fabric);
    EXPECT_GE(classes_of_ranks(fabric, CommType::kAllGather, 32 * 1024, false), 8);
    // Every second server turns the other way.
    EXPECT_EQ(classes_of_ranks(fabric, CommType::kAllGather, 32 * 1024, true), 2);
  }
  const char* three = "Spectrum-X:g=48,gps=16";
  EXPECT_EQ(classes_of_ranks(three, CommType::kAllReduce, 4, false), 48);
  EXPECT_EQ(classes_of_ranks(three, CommType::kAllReduce, 4, true), 1);
  EXPECT_EQ(classes_of_ranks(three, CommType::kAllGather, 32 * 1024, true), 3);  // one a server
}

/// The folded graph of an all-reduce by Simple on a sprayed fabric.
FlowGraph folded_graph(const char* fabric, const char* algorithm, std::int32_t channels,
                       std::int64_t mib) {
  const Topology topology = topology_from(fabric);
  CollectiveRequest request;
  request.op = CommType::kAllReduce;
  request.bytes = Bytes(mib << 20);
  request.channels = channels;
  FlowOptions flow;
  flow.routes.spray = true;
  FlowGraphBuilder::Setting setting;
  setting.nodes = topology.gpus();
  setting.send_latency = Time::us(4);
  FlowGraphBuilder builder(topology, flow);
  builder.add(build_schedule(algorithm_named(algorithm, request.op), request,
                             shape_of_nodes(topology, setting.nodes)),
              setting);
  const FlowGraph graph = builder.finish();
  const auto partition = find_symmetry(graph);
  return partition ? fold(graph, *partition) : graph;
}

Time end_of(const FlowGraph& graph) {
  return std::ranges::max(run_flow_graph(graph, true).delivered);
}

TEST(SymmetryProperty, ASteadyEndIsAsCloseAsItTells) {
  int answers = 0;
  for (const char* fabric : {"Spectrum-X:g=32", "Spectrum-X:g=64", "DCN+:g=32"}) {
    for (const auto& [channels, mib] : {std::pair(2, 512), {4, 1024}, {16, 2048}, {16, 4096}}) {
      const FlowGraph graph = folded_graph(fabric, "tree", channels, mib);
      const Time exact = end_of(graph);
      for (const double budget : {5e-2, 1e-2, 3e-3}) {
        const auto steady = steady_end(graph, budget);
        if (!steady) {
          continue;
        }
        ++answers;
        const double off = std::abs((steady->end - exact).seconds());
        EXPECT_LE(steady->error.seconds(), budget * steady->end.seconds() * (1 + 1e-9));
        EXPECT_LE(off, steady->error.seconds()) << fabric << " " << channels << " " << mib;
        std::int64_t all = 0;
        for (const FlowGraph::Slot& slot : graph.slots) {
          all += slot.count;
        }
        EXPECT_LT(steady->simulated * 2, all);
      }
    }
  }
  EXPECT_GE(answers, 12);
  EXPECT_FALSE(steady_end(folded_graph("Spectrum-X:g=32", "tree", 16, 64), 0.5));  // 8 pieces
  FlowGraph uneven = folded_graph("Spectrum-X:g=32", "tree", 16, 2048);
  uneven.slots.front().count += 1;
  EXPECT_FALSE(steady_end(uneven, 0.5));
}

TEST(SymmetryProperty, NoSteadyEndWhereThePaceIsNotThatOfAPort) {
  // Two slots that wait for each other's last: 3 us of latency pace them, not the 1 us on the wire.
  FlowGraph graph;
  graph.capacity = {8e9};
  for (std::int32_t i = 0; i < 2; ++i) {
    FlowGraph::Slot& slot = graph.slots.emplace_back();
    slot.bits = 4000;
    slot.latency = slot.start_latency = slot.forward_latency = Time::ns(1500);
    slot.count = 4000;
    graph.term.push_back({ConstraintId(0), 1});
    graph.term_begin.push_back(i + 1);
    graph.wait.push_back({1 - i, 1});
    graph.wait_begin.push_back(i + 1);
  }
  EXPECT_FALSE(steady_end(graph, 0.01));
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
}  // namespace lockstep::symmetry_property_test
