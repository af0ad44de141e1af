// Transfers that each draw a source port send and deliver when they do on connections that are laid
// one by one: random transfers, several on a connection, beside an engine that a link's failure at
// the end of time keeps from FreshTransfers.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "tests/support/fabrics.h"
#include "tests/support/random_flows.h"
#include "tests/support/transfer_runs.h"

namespace lockstep::fresh_transfers_property_test {
namespace {

using testing::expect_equal_bytes;
using testing::run_transfers;
using testing::Transfer;
using testing::TransferRun;

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
    const TransferRun a = run_transfers(fresh, connections, transfers),
                      b = run_transfers(plain, connections, transfers);
    ASSERT_EQ(a.events.size(), 2 * transfers.size());
    ASSERT_EQ(a.events, b.events) << "round " << round;
    expect_equal_bytes(a.ports_between, b.ports_between);
    expect_equal_bytes(a.ports, b.ports);
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
