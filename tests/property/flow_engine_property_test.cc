#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "simulator/network/flow/flow_engine.h"
#include "simulator/network/flow/max_min_certificate.h"
#include "tests/support/flow_run.h"
#include "tests/support/random_flows.h"

namespace lockstep::flow_engine_property_test {
namespace {

using testing::outcomes;
using testing::random_flows;
using testing::run_to_end;

/// 4 servers of 4 GPUs, 2 spines, 2 servers a segment: NVLink, leaf and spine routes, ECMP.
Topology fabric() {
  Topology topology = testing::rail_optimised(4, 4, 2, 2);
  // NVLink at 2880 Gbps: the first 16 links.
  topology.link_classes.push_back({Bandwidth::gbps(2880), Time::ns(25), 0, "", "", ""});
  for (std::size_t i = 0; i < 16; ++i) {
    topology.links[i].link_class = 1;
  }
  return topology;
}

std::vector<FlowSpec> some_flows(Rng& rng, int count = 60) {
  return random_flows(rng, count, 16, 2'000'000, Time::us(100));
}

FlowOptions options_of(int round) {
  FlowOptions options = round % 4 == 3 ? simai_flow_options() : FlowOptions{};
  options.routes.spray = round % 4 == 1;
  options.wait_for_ack = round % 4 >= 2;
  return options;
}

std::vector<NetworkEvent> run(const Topology& topology, const FlowOptions& options,
                              const std::vector<FlowSpec>& flows) {
  FlowEngine engine(topology, options);
  for (const FlowSpec& flow : flows) {
    engine.start(flow);
  }
  return run_to_end(engine);
}

TEST(FlowEngineProperty, EveryPortCarriesItsFlowsToTheByte) {
  // Expected: sum over the flows of wire bytes times the share that the route gives the port.
  const Topology topology = fabric();
  for (int round = 0; round < 12; ++round) {
    Rng rng(static_cast<std::uint64_t>(round), "conservation");
    FlowOptions options = options_of(round);
    options.fresh_ports = false;
    const std::vector<FlowSpec> flows = some_flows(rng);
    FlowEngine engine(topology, options);
    Router router(topology, options.routes);
    std::vector<double> expected(2 * topology.links.size());
    for (const FlowSpec& flow : flows) {
      engine.start(flow);
      const std::int64_t payload = options.payload.count();
      const std::int64_t packets =
          std::max<std::int64_t>(1, (flow.bytes.count() + payload - 1) / payload);
      Route route;
      router.route({flow.source, flow.destination, static_cast<std::uint16_t>(10000 + flow.channel),
                    100, flow.channel},
                   route);
      for (const Hop& hop : route.hops) {
        expected[hop.port.index()] +=
            static_cast<double>(flow.bytes.count() + packets * options.header.count()) * hop.share;
      }
    }
    run_to_end(engine);
    const std::vector<PortUse> use = engine.port_use();
    for (std::size_t port = 0; port < use.size(); ++port) {
      ASSERT_NEAR(static_cast<double>(use[port].bytes.count()), expected[port], 1) << port;
    }
  }
}

TEST(FlowEngineProperty, PortsCarryTheIntegralOfTheRates) {
  // Between two stops the rates are constant; what a port carried must be their integral. A stop at
  // every start and event; advance(now()) brings the rates up to date without moving the clock.
  const Topology topology = fabric();
  for (int round = 0; round < 8; ++round) {
    Rng rng(static_cast<std::uint64_t>(round), "integral");
    const std::vector<FlowSpec> flows = some_flows(rng);
    FlowEngine engine(topology, options_of(round));
    std::set<Time> starts;
    for (const FlowSpec& flow : flows) {
      engine.start(flow);
      starts.insert(flow.start);
    }
    std::vector<double> integral(2 * topology.links.size());
    std::vector<NetworkEvent> events;
    while (events.size() < 2 * flows.size()) {
      const Time before = engine.now();
      engine.advance(before, events);
      std::vector<double> rate(integral.size());
      for (std::size_t port = 0; port < rate.size(); ++port) {
        for (const MaxMin::User& user : engine.rates().users(ConstraintId(port))) {
          rate[port] +=
              engine.rates().coefficient(user) * engine.rates().rate(VariableId(user.variable));
        }
      }
      const auto next = starts.upper_bound(before);
      engine.advance(next == starts.end() ? Time::max() : *next, events);
      const double seconds = (engine.now() - before).seconds();
      const std::vector<PortUse> use = engine.port_use();
      for (std::size_t port = 0; port < rate.size(); ++port) {
        if (use[port].bytes > Bytes() && rate[port] == 0 && integral[port] == 0) {
          continue;  // cannot bind, so nobody is listed on it
        }
        integral[port] += rate[port] / 8 * seconds;
        // Half a byte of rounding, and less than a picosecond of rate for each completion.
        ASSERT_NEAR(integral[port], static_cast<double>(use[port].bytes.count()), 20);
      }
    }
  }
}

TEST(FlowEngineProperty, EachSolveHoldsTheCertificate) {
  // Which includes that no capacity is left over where it could be used.
  const Topology topology = fabric();
  for (int round = 0; round < 8; ++round) {
    Rng rng(static_cast<std::uint64_t>(round), "certificate");
    FlowEngine engine(topology, options_of(round));
    const std::vector<FlowSpec> flows = some_flows(rng);
    for (const FlowSpec& flow : flows) {
      engine.start(flow);
    }
    std::vector<NetworkEvent> events;
    while (events.size() < 2 * flows.size()) {
      engine.advance(Time::max(), events);
      engine.advance(engine.now(), events);
      std::set<std::int32_t> active;
      for (std::size_t port = 0; port < engine.rates().constraint_count(); ++port) {
        for (const MaxMin::User& user : engine.rates().users(ConstraintId(port))) {
          active.insert(user.variable);
        }
      }
      ASSERT_EQ(max_min_violation(engine.rates(), std::vector(active.begin(), active.end())), "");
    }
  }
}

TEST(FlowEngineProperty, ScalingBandwidthsScalesTransferTimes) {
  // All start at 0. Each completion is rounded up by less than 1 ps, and a flow's end depends on at
  // most all others: k times the faster end differs by at most k * flows.
  for (int round = 0; round < 8; ++round) {
    Rng rng(static_cast<std::uint64_t>(round), "scaling");
    std::vector<FlowSpec> flows = some_flows(rng);
    for (FlowSpec& flow : flows) {
      flow.start = Time();
    }
    const Topology topology = fabric();
    FlowOptions options = options_of(round % 3);
    const auto slow = outcomes(run(topology, options, flows));
    for (const std::int64_t k : {2, 5}) {
      Topology faster = topology;
      for (LinkClass& link_class : faster.link_classes) {
        link_class.rate = Bandwidth::bits_per_second(k * link_class.rate.bits_per_second());
      }
      const auto fast = outcomes(run(faster, options, flows));
      for (const FlowSpec& flow : flows) {
        const std::int64_t scaled = k * fast.at(flow.tag).sent.count_ps();
        ASSERT_LE(std::abs(scaled - slow.at(flow.tag).sent.count_ps()), k * 60);
      }
    }
  }
}

TEST(FlowEngineProperty, EqualFlowsEndAtOneMoment) {
  // All-to-all on a star, two sizes: equal flows are equal by symmetry, although they are limited
  // by different ports, whose shares are computed in different ways.
  for (std::int32_t gpus = 3; gpus <= 13; ++gpus) {
    const Topology topology = testing::star(gpus);
    std::vector<FlowSpec> flows;
    for (std::int32_t i = 0; i < gpus * gpus; ++i) {
      if (i / gpus != i % gpus) {
        const bool neighbour = (i / gpus + 1) % gpus == i % gpus;
        flows.push_back({NodeId(i / gpus), NodeId(i % gpus), Bytes(neighbour ? 777'777 : 1'000'003),
                         Time(), 0, static_cast<std::uint64_t>(i)});
      }
    }
    std::set<Time> ends;
    for (const NetworkEvent& event : run(topology, {}, flows)) {
      if (event.kind == NetworkEvent::Kind::kSent) {
        ends.insert(event.when);
      }
    }
    EXPECT_EQ(ends.size(), 2U) << gpus << " GPUs";
  }
}

TEST(FlowEngineProperty, OrderOfStartCallsChangesNoTime) {
  const Topology topology = fabric();
  for (int round = 0; round < 8; ++round) {
    Rng rng(static_cast<std::uint64_t>(round), "relabelling");
    FlowOptions options = options_of(round);
    options.fresh_ports = false;  // those are numbered in the order of the calls
    std::vector<FlowSpec> flows = some_flows(rng);
    const auto expected = outcomes(run(topology, options, flows));
    for (std::size_t i = flows.size(); i > 1; --i) {
      std::swap(flows[i - 1], flows[rng.below(i)]);
    }
    ASSERT_EQ(outcomes(run(topology, options, flows)), expected);
  }
}

TEST(FlowEngineProperty, EventsComeInOrderAndTheSameEachTime) {
  const Topology topology = fabric();
  for (int round = 0; round < 8; ++round) {
    Rng rng(static_cast<std::uint64_t>(round), "order");
    const std::vector<FlowSpec> flows = some_flows(rng);  // tag = order of start
    const std::vector<NetworkEvent> events = run(topology, options_of(round), flows);
    const std::vector<NetworkEvent> again = run(topology, options_of(round), flows);
    ASSERT_EQ(events.size(), 2 * flows.size());
    const auto key = [](const NetworkEvent& e) { return std::tuple(e.when, e.tag, e.kind); };
    for (std::size_t i = 0; i < events.size(); ++i) {
      ASSERT_EQ(key(events[i]), key(again[i]));
      ASSERT_TRUE(i == 0 || key(events[i - 1]) < key(events[i]));
    }
  }
}

TEST(FlowEngineProperty, StoppingOnTheWayChangesNothing) {
  const Topology topology = fabric();
  for (int round = 0; round < 8; ++round) {
    Rng rng(static_cast<std::uint64_t>(round), "stops");
    const std::vector<FlowSpec> flows = some_flows(rng);
    const auto expected = outcomes(run(topology, options_of(round), flows));
    FlowEngine engine(topology, options_of(round));
    for (const FlowSpec& flow : flows) {
      engine.start(flow);
    }
    std::vector<NetworkEvent> events;
    while (events.size() < 2 * flows.size()) {
      const Time limit = engine.now() + Time::ps(rng.between(0, 3'000'000));
      ASSERT_LE(engine.advance(limit, events), limit);
    }
    ASSERT_EQ(outcomes(events), expected);
  }
}

TEST(FlowEngineProperty, StartingLateEqualsStartingInAdvance) {
  // As a replay does it: each flow is handed over only when its time has come.
  const Topology topology = fabric();
  for (int round = 0; round < 8; ++round) {
    Rng rng(static_cast<std::uint64_t>(round), "late");
    std::vector<FlowSpec> flows = some_flows(rng);
    std::stable_sort(flows.begin(), flows.end(),
                     [](const FlowSpec& a, const FlowSpec& b) { return a.start < b.start; });
    const auto expected = outcomes(run(topology, options_of(round), flows));
    FlowEngine engine(topology, options_of(round));
    std::vector<NetworkEvent> events;
    for (const FlowSpec& flow : flows) {
      while (engine.now() < flow.start) {
        engine.advance(flow.start, events);
      }
      engine.start(flow);
    }
    while (events.size() < 2 * flows.size()) {
      engine.advance(Time::max(), events);
    }
    ASSERT_EQ(outcomes(events), expected);
  }
}

/// Some links that are down for a while, none of them the only one of a GPU's way for good.
LinkFault random_fault(Rng& rng, const Topology& topology, Time rerouting) {
  LinkFault fault;
  for (int i = 0; i < 3; ++i) {
    fault.links.emplace_back(rng.below(topology.links.size()));
  }
  std::ranges::sort(fault.links);
  fault.links.erase(std::unique(fault.links.begin(), fault.links.end()), fault.links.end());
  fault.from = Time::ps(rng.between(0, Time::us(100).count_ps()));
  fault.until = fault.from + Time::ps(rng.between(1, Time::us(100).count_ps()));
  fault.rerouting = rerouting;
  return fault;
}

TEST(FlowEngineProperty, AFaultWithoutReroutingIsNextToNoBandwidth) {
  // 100 Mbps carry at most 1,250 bytes in the 100 us of a fault, 25 ns at full rate, for each of
  // the faults' six ports.
  const Topology topology = fabric();
  for (int round = 0; round < 20; ++round) {
    Rng rng(static_cast<std::uint64_t>(round), "fault");
    FlowOptions options = options_of(round);
    options.fresh_ports = false;
    const std::vector<FlowSpec> flows = some_flows(rng);
    const LinkFault fault = random_fault(rng, topology, Time::max());
    FlowEngine slowed(topology, options);
    for (const FlowSpec& flow : flows) {
      slowed.start(flow);
    }
    std::vector<NetworkEvent> events;
    for (const auto& [when, share] : {std::pair(fault.from, 0.0), std::pair(fault.until, 1.0)}) {
      while (slowed.now() < when) {
        slowed.advance(when, events);
      }
      for (const LinkId link : fault.links) {
        for (const std::int32_t port : {2 * link.value, 2 * link.value + 1}) {
          const double whole = PathFinder(topology, options).capacity(PortId(port));
          slowed.set_capacity(PortId(port), std::max(1e8, share * whole));
        }
      }
    }
    while (events.size() < 2 * flows.size()) {
      slowed.advance(Time::max(), events);
    }
    options.faults = {fault};
    const auto failed = outcomes(run(topology, options, flows));
    const auto expected = outcomes(events);
    ASSERT_EQ(failed.size(), flows.size());
    for (const FlowSpec& flow : flows) {
      ASSERT_NEAR(static_cast<double>(failed.at(flow.tag).sent.count_ps()),
                  static_cast<double>(expected.at(flow.tag).sent.count_ps()), 6 * 25'000)
          << round << ": " << flow.tag;
    }
  }
}

TEST(FlowEngineProperty, BytesArriveWhateverFailsAndReroutes) {
  // Every flow ends, and a GPU's own ports carry what it sends and gets, whichever way that goes.
  const Topology topology = fabric();
  for (int round = 0; round < 30; ++round) {
    Rng rng(static_cast<std::uint64_t>(round), "faults");
    FlowOptions options = options_of(round);
    for (int i = 0; i < 4; ++i) {
      options.faults.push_back(random_fault(rng, topology, Time::us(rng.between(0, 30))));
    }
    const std::vector<FlowSpec> flows = some_flows(rng);
    FlowEngine engine(topology, options);
    std::vector<std::int64_t> wire(16);
    for (const FlowSpec& flow : flows) {
      engine.start(flow);
      const std::int64_t bytes = PathFinder(topology, options).wire_bytes(flow.bytes).count();
      wire[flow.source.index()] += bytes;
      wire[flow.destination.index()] += bytes;
    }
    ASSERT_EQ(outcomes(run_to_end(engine)).size(), flows.size()) << round;
    ASSERT_TRUE(engine.stuck().empty());
    ASSERT_EQ(engine.live_flows(), 0U);
    const std::vector<PortUse> use = engine.port_use();
    for (std::int32_t gpu = 0; gpu < 16; ++gpu) {
      double carried = 0;
      for (std::size_t link = 0; link < topology.links.size(); ++link) {
        const Link& ends = topology.links[link];
        if (ends.a.value == gpu || ends.b.value == gpu) {
          carried += static_cast<double>((use[2 * link].bytes + use[2 * link + 1].bytes).count());
        }
      }
      ASSERT_NEAR(carried, static_cast<double>(wire[static_cast<std::size_t>(gpu)]), 10) << round;
    }
  }
}

}  // namespace
}  // namespace lockstep::flow_engine_property_test
