// Connections in bundles send and deliver when they would alone, to the picosecond: random flows
// over connections of which several have the same terms; and a network whose state is saved and
// comes again is the same.
#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "simulator/network/flow/fluid_network.h"

namespace lockstep::fluid_bundle_property_test {
namespace {

struct Flow {
  std::int32_t connection;
  double bits;
  Time latency, when;
};

struct Case {
  std::vector<double> capacity;
  std::vector<std::vector<MaxMin::Term>> kinds;  ///< of terms
  std::vector<std::size_t> kind;                 ///< of each connection
  std::vector<Flow> flows;                       ///< by start
};

Case random_case(Rng& rng) {
  Case made;
  const std::size_t constraints = 1 + rng.below(6), kinds = 1 + rng.below(6);
  for (std::size_t c = 0; c < constraints; ++c) {
    made.capacity.push_back(static_cast<double>(1 + rng.below(9)) * 1e10 / 3);
  }
  for (std::size_t i = 0; i < kinds; ++i) {
    std::vector<MaxMin::Term>& terms = made.kinds.emplace_back();
    for (std::size_t c = 0; c < constraints; ++c) {
      if (c == i % constraints || rng.below(3) == 0) {
        terms.push_back({ConstraintId(c), rng.below(3) == 0 ? 0.3 : 1.0});
      }
    }
  }
  const std::size_t connections = 1 + rng.below(24);
  for (std::size_t i = 0; i < connections; ++i) {
    made.kind.push_back(rng.below(kinds));
  }
  const std::size_t flows = 1 + rng.below(200);
  for (std::size_t i = 0; i < flows; ++i) {
    made.flows.push_back({static_cast<std::int32_t>(rng.below(connections)),
                          rng.below(9) == 0 ? 0.0 : static_cast<double>(1 + rng.below(5)) * 12345.5,
                          Time::ns(static_cast<std::int64_t>(rng.below(3))),
                          Time::ns(static_cast<std::int64_t>(rng.below(40)) * 50)});
  }
  std::ranges::stable_sort(made.flows, {}, &Flow::when);
  return made;
}

FluidNetwork network_of(const Case& made, bool bundled) {
  FluidNetwork network;
  network.certify();
  for (const double capacity : made.capacity) {
    network.add_constraint(capacity);
  }
  std::map<std::size_t, std::vector<std::int32_t>> alike;
  for (std::size_t i = 0; i < made.kind.size(); ++i) {
    network.connect(made.kinds[made.kind[i]]);
    alike[made.kind[i]].push_back(static_cast<std::int32_t>(i));
  }
  for (const auto& [kind, connections] : alike) {
    if (bundled && connections.size() > 1) {
      network.bundle(connections);
    }
  }
  return network;
}

using Ends = std::map<std::pair<std::uint64_t, NetworkEvent::Kind>, Time>;

void advance(FluidNetwork& network, Time limit, Ends& ends) {
  std::vector<NetworkEvent> events;
  do {
    events.clear();
    network.advance(limit, events);
    for (const NetworkEvent& event : events) {
      EXPECT_TRUE(ends.try_emplace({event.tag, event.kind}, event.when).second);
    }
  } while (!events.empty());
}

/// Starts each flow at its time, half of them told ahead.
Ends run(const Case& made, bool bundled) {
  FluidNetwork network = network_of(made, bundled);
  Ends ends;
  for (std::size_t i = 0; i < made.flows.size(); ++i) {
    const Flow& flow = made.flows[i];
    if (i % 2 == 0) {
      advance(network, flow.when, ends);
    }
    network.start(ConnectionId(flow.connection), flow.bits, flow.latency, flow.when, i);
  }
  advance(network, Time::max(), ends);
  EXPECT_TRUE(network.idle());
  return ends;
}

TEST(FluidBundles, EndFlowsWhenTheyWouldEndAlone) {
  Rng rng(7, "fluid/bundle");
  for (int i = 0; i < 400; ++i) {
    const Case made = random_case(rng);
    const Ends bundled = run(made, true), alone = run(made, false);
    ASSERT_EQ(bundled.size(), 2 * made.flows.size()) << "case " << i;
    ASSERT_EQ(bundled, alone) << "case " << i;
  }
}

TEST(FluidBundles, StatesComeAgainAndCarriedBitsAreThoseOfEachConnection) {
  FluidNetwork network;
  const ConstraintId port = network.add_constraint(8e9);
  const std::vector<MaxMin::Term> terms{{port, 1}};
  const std::vector<std::int32_t> both{network.connect(terms).value, network.connect(terms).value};
  network.bundle(both);
  FluidNetwork::Snapshot state;
  std::vector<NetworkEvent> events;
  for (int round = 0; round < 3; ++round) {
    // 8000 bits at 4 Gb/s each, of which the first is alone for a microsecond.
    const Time begin = network.now();
    network.start(ConnectionId(both[0]), 16000, Time(), begin, 0);
    network.start(ConnectionId(both[1]), 4000, Time(), begin + Time::us(1), 1);
    network.advance(begin + Time::ns(1500), events);
    EXPECT_NEAR(network.carried_bits(ConnectionId(both[0])), 16000.0 * round + 10000, 1e-9);
    EXPECT_NEAR(network.carried_bits(ConnectionId(both[1])), 4000.0 * round + 2000, 1e-9);
    EXPECT_NEAR(network.left(ConnectionId(both[0])), 6000, 1e-9);
    if (round > 0) {
      EXPECT_TRUE(network.same_state(state));
    }
    network.save_state(state);
    Ends ends;
    advance(network, Time::max(), ends);
    EXPECT_FALSE(network.same_state(state));
    EXPECT_EQ((ends[{1, NetworkEvent::Kind::kSent}] - begin), Time::us(2));
    EXPECT_EQ((ends[{0, NetworkEvent::Kind::kSent}] - begin), Time::ns(2500));
  }
}

}  // namespace
}  // namespace lockstep::fluid_bundle_property_test
