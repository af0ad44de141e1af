// Transfers that each draw a source port send and deliver when they do on connections that are laid
// one by one: random transfers, several on a connection, beside an engine that a link's failure at
// the end of time keeps from FreshTransfers.
#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "simulator/network/flow/flow_engine.h"
#include "tests/support/fabrics.h"
#include "tests/support/random_flows.h"

namespace lockstep::fresh_transfers_property_test {
namespace {

struct Transfer {
  std::size_t connection = 0;
  Bytes bytes;
  Time when;
};

struct Outcome {
  std::vector<std::tuple<Time, NetworkEvent::Kind, std::uint64_t>> events;
  std::vector<PortUse> ports, ports_between;
};

/// Half of the connections are made when others are in use; some transfers are told ahead.
Outcome run(FlowEngine& engine, const std::vector<FlowSpec>& connections,
            const std::vector<Transfer>& transfers) {
  Outcome outcome;
  std::vector<ConnectionId> ids;
  const auto connect = [&](std::size_t until) {
    for (; ids.size() < until; ids.emplace_back()) {
      const FlowSpec& each = connections[ids.size()];
      const ConnectionId id = engine.connect(each.source, each.destination, each.channel);
      EXPECT_EQ(id, ConnectionId(ids.size()));
    }
  };
  std::vector<NetworkEvent> events;
  const auto advance = [&](Time limit) {
    do {
      events.clear();
      engine.advance(limit, events);
      for (const NetworkEvent& event : events) {
        outcome.events.emplace_back(event.when, event.kind, event.tag);
      }
    } while (!events.empty());
  };
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const Transfer& transfer = transfers[i];
    connect(std::max(connections.size() / 2, transfer.connection + 1));
    if (i % 3 != 0) {
      advance(transfer.when);
    }
    engine.start(ConnectionId(transfer.connection), transfer.bytes, transfer.when, i);
    if (2 * i == transfers.size()) {
      outcome.ports_between = engine.port_use();
    }
  }
  advance(Time::max());
  outcome.ports = engine.port_use();
  std::ranges::sort(outcome.events);
  return outcome;
}

void expect_equal(const std::vector<PortUse>& a, const std::vector<PortUse>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t port = 0; port < a.size(); ++port) {
    EXPECT_EQ(a[port].bytes, b[port].bytes) << "port " << port;
  }
}

TEST(FreshTransfers, GoAsOnConnectionsOfTheirOwn) {
  const Topology topology = testing::rail_optimised(4, 4, 2, 4);
  for (int round = 0; round < 60; ++round) {
    Rng rng(static_cast<std::uint64_t>(round), "fresh transfers");
    FlowOptions options = simai_flow_options();
    options.routes.pxn = round % 4 == 3;
    options.routes.rail_affinity = round % 4 == 2;
    std::vector<FlowSpec> connections = testing::random_flows(rng, 40, 16, 1, Time());
    for (std::size_t i = 1; i < connections.size(); ++i) {
      if (rng.below(2) == 0) {  // several connections and channels between two nodes
        connections[i] = connections[rng.below(i)];
        connections[i].channel = static_cast<std::int32_t>(rng.below(3));
      }
    }
    std::vector<Transfer> transfers;
    for (int i = 0; i < 200; ++i) {
      transfers.push_back(
          {rng.below(connections.size()),
           Bytes(static_cast<std::int64_t>(rng.below(rng.below(2) == 0 ? 100 : 2'000'000))),
           Time::ns(static_cast<std::int64_t>(rng.below(200)) * 1000)});
    }
    std::ranges::stable_sort(transfers, {}, &Transfer::when);
    FlowEngine fresh(topology, options);
    options.faults.push_back({{LinkId(0)}, Time::max() - Time::us(1)});
    FlowEngine plain(topology, options);
    const Outcome a = run(fresh, connections, transfers), b = run(plain, connections, transfers);
    ASSERT_EQ(a.events.size(), 2 * transfers.size());
    ASSERT_EQ(a.events, b.events) << "round " << round;
    expect_equal(a.ports_between, b.ports_between);
    expect_equal(a.ports, b.ports);
    EXPECT_EQ(fresh.live_flows(), 0U);
  }
}

TEST(FreshTransfers, RefuseWhatHasNoRoute) {
  Topology topology = testing::rail_optimised(2, 2, 1, 1);
  FlowEngine engine(topology, simai_flow_options());
  EXPECT_THROW(engine.connect(NodeId(0), NodeId(0), 0), Error);
  EXPECT_THROW(engine.connect(NodeId(0), NodeId(topology.nodes.size()), 0), Error);
  EXPECT_THROW(engine.connect(NodeId(-1), NodeId(1), 0), Error);
  EXPECT_EQ(engine.connect(NodeId(0), NodeId(1), 0), ConnectionId(0));
}

}  // namespace
}  // namespace lockstep::fresh_transfers_property_test
