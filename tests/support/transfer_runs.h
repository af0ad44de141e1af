#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "simulator/network/flow/flow_engine.h"

namespace lockstep::testing {

/// Transfers over connections that the engine is given one after the other.
struct Transfer {
  std::size_t connection = 0;
  Bytes bytes;
  Time when;
};

struct TransferRun {
  std::vector<std::tuple<Time, NetworkEvent::Kind, std::uint64_t>> events;
  std::vector<PortUse> ports, ports_between;  ///< at the end, and at half of the transfers
};

/// Transfer i has tag i. Half of the connections are made when others are in use; some transfers
/// are told ahead.
inline TransferRun run_transfers(FlowEngine& engine, const std::vector<FlowSpec>& connections,
                                 const std::vector<Transfer>& transfers) {
  TransferRun outcome;
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

inline void expect_equal_bytes(const std::vector<PortUse>& a, const std::vector<PortUse>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t port = 0; port < a.size(); ++port) {
    EXPECT_EQ(a[port].bytes, b[port].bytes) << "port " << port;
  }
}

}  // namespace lockstep::testing
