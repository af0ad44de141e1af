// A network that takes over what another one has under way goes on as that one would have, to the
// picosecond: random connections over shared constraints, stopped at random moments, in between
// events and at them.
#include <algorithm>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "simulator/network/flow/fluid_network.h"

namespace lockstep::fluid_adopt_property_test {
namespace {

struct Case {
  std::vector<double> capacity;
  std::vector<std::vector<MaxMin::Term>> connections;
};

Case random_case(Rng& rng) {
  Case made;
  const std::size_t constraints = 1 + rng.below(6), connections = 1 + rng.below(12);
  for (std::size_t c = 0; c < constraints; ++c) {
    made.capacity.push_back(static_cast<double>(1 + rng.below(9)) * 1e10);
  }
  for (std::size_t i = 0; i < connections; ++i) {
    std::vector<MaxMin::Term>& terms = made.connections.emplace_back();
    for (std::size_t c = 0; c < constraints; ++c) {
      if (c == i % constraints || rng.below(3) == 0) {
        terms.push_back({ConstraintId(c), rng.below(2) == 0 ? 1.0 : 0.25});
      }
    }
  }
  return made;
}

/// Connections in this order.
FluidNetwork network_of(const Case& made, const std::vector<std::size_t>& order) {
  FluidNetwork network;
  for (const double capacity : made.capacity) {
    network.add_constraint(capacity);
  }
  for (const std::size_t i : order) {
    network.connect(made.connections[i]);
  }
  return network;
}

/// When each tag was sent and delivered, times from `zero`.
using Times = std::map<std::pair<std::uint64_t, NetworkEvent::Kind>, Time>;

void run(FluidNetwork& network, Time until, Time zero, Times& times) {
  std::vector<NetworkEvent> events;
  do {
    events.clear();
    network.advance(until, events);
    for (const NetworkEvent& event : events) {
      EXPECT_TRUE(times.try_emplace({event.tag, event.kind}, event.when - zero).second);
    }
  } while (!events.empty());
}

TEST(FluidAdoptProperty, WhatIsTakenOverGoesOnAsItWould) {
  Rng rng(7, "fluid/adopt");
  std::size_t taken_over = 0;
  for (int round = 0; round < 400; ++round) {
    const Case made = random_case(rng);
    std::vector<std::size_t> order(made.connections.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      order[i] = i;
    }
    FluidNetwork whole = network_of(made, order), before = network_of(made, order);
    std::uint64_t tag = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (std::uint64_t k = rng.below(5); k > 0; --k) {
        const auto bits = static_cast<double>(rng.below(4) == 0 ? 0 : 1 + rng.below(1'000'000));
        const Time latency = Time::ns(rng.between(0, 3000)),
                   when = Time::ns(rng.between(0, 20'000));
        for (FluidNetwork* network : {&whole, &before}) {
          network->start(ConnectionId(i), bits, latency, when, tag);
        }
        ++tag;
      }
    }
    Times expected, times;
    run(whole, Time::max(), Time(), expected);
    Time stop = Time::ns(rng.between(0, 30'000));
    if (rng.below(2) == 0 && !expected.empty()) {  // at an event
      auto event = expected.begin();
      std::advance(event, static_cast<std::ptrdiff_t>(rng.below(expected.size())));
      stop = event->second;
    }
    run(before, stop, Time(), times);
    std::reverse(order.begin(), order.end());
    FluidNetwork after = network_of(made, order);  // its clock begins at 0
    for (std::size_t i = 0; i < order.size(); ++i) {
      after.adopt(ConnectionId(i), before, ConnectionId(order[i]),
                  [](std::uint64_t old) { return old; });
    }
    before.for_each_delivery([&](Time in, std::uint64_t old) { after.add_delivery(in, old); });
    EXPECT_EQ(after.live_flows(), before.live_flows());
    taken_over += after.live_flows();
    run(after, Time::max(), Time() - stop, times);
    EXPECT_TRUE(after.idle());
    ASSERT_EQ(times, expected) << "round " << round;
  }
  EXPECT_GT(taken_over, 1000U);
}

TEST(FluidNetwork, ResumesAFlowThatHasBeenLeaving) {
  for (const std::int64_t late_ps : {1, 777, 123'456, 2'799'999}) {
    const auto end = [&](bool resumed) {
      FluidNetwork network;
      const ConstraintId constraint = network.add_constraint(3e9);
      const ConnectionId flow = network.connect(std::vector<MaxMin::Term>{{constraint, 0.7}});
      const ConnectionId other = network.connect(std::vector<MaxMin::Term>{{constraint, 1}});
      std::vector<NetworkEvent> events;
      if (!resumed) {
        network.start(flow, 12345.5, Time::ns(3), Time(), 1);
        network.advance(Time::ps(late_ps), events);
      } else {
        network.advance(Time::ps(late_ps), events);
        FluidNetwork alone;
        alone.add_constraint(3e9);
        alone.connect(std::vector<MaxMin::Term>{{ConstraintId(0), 0.7}});
        alone.start(ConnectionId(0), 12345.5, Time::ns(3), Time(), 1);
        alone.next_change();
        network.resume(flow, 12345.5, Time::ns(3), Time(), alone.rates().rate_units(VariableId(0)),
                       1);
      }
      network.start(other, 5000, Time(), network.now() + Time::ns(10), 2);
      for (std::size_t before = SIZE_MAX; before != events.size();) {
        before = events.size();
        network.advance(Time::max(), events);
      }
      std::map<std::uint64_t, Time> ends;  // the last event of each: its delivery
      for (const NetworkEvent& event : events) {
        ends[event.tag] = event.when;
      }
      return ends;
    };
    EXPECT_EQ(end(true), end(false)) << late_ps;
  }
}

}  // namespace
}  // namespace lockstep::fluid_adopt_property_test
