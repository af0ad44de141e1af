// Messages that meet by packets, beside a fluid's transfers: one by one they are equal; together
// they carry the same bytes the same ways, and none is faster than alone.
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "tests/support/fabrics.h"
#include "tests/support/random_flows.h"
#include "tests/support/transfer_runs.h"

namespace lockstep::message_transfers_property_test {
namespace {

using testing::expect_equal_bytes;
using testing::run_transfers;
using testing::Transfer;
using testing::TransferRun;

struct Case {
  FlowOptions options;
  std::vector<FlowSpec> connections;
  std::vector<Transfer> transfers;
};

/// 200 transfers over 40 connections, `apart` from each other at the most.
Case random_case(int round, Time apart) {
  Rng rng(static_cast<std::uint64_t>(round), "message transfers");
  Case one;
  one.options = simai_flow_options();
  one.options.routes.pxn = round % 4 == 3;
  one.options.routes.rail_affinity = round % 4 == 2;
  one.connections = testing::random_flows(rng, 40, 16, 1, Time());
  for (std::size_t i = 1; i < one.connections.size(); ++i) {
    if (rng.below(2) == 0) {  // several connections and channels between two nodes
      one.connections[i] = one.connections[rng.below(i)];
      one.connections[i].channel = static_cast<std::int32_t>(rng.below(3));
    }
  }
  Time when;
  for (int i = 0; i < 200; ++i) {
    when += Time::ps(rng.between(apart.count_ps() / 2, apart.count_ps()));
    one.transfers.push_back(
        {rng.below(one.connections.size()),
         Bytes(static_cast<std::int64_t>(rng.below(rng.below(2) == 0 ? 100 : 2'000'000))), when});
  }
  return one;
}

const Topology kTopology = testing::rail_optimised(4, 4, 2, 4);

TEST(MessageTransfers, OneByOneTakeWhatTheirBytesTake) {
  for (int round = 0; round < 20; ++round) {
    Case one = random_case(round, Time::us(500));
    for (std::size_t i = 0; i < one.transfers.size(); ++i) {
      one.transfers[i].connection = 7 * i % one.connections.size();  // none twice in a row
    }
    FlowEngine messages(kTopology, one.options), plain(kTopology, one.options);
    messages.meet_by_packets();
    const TransferRun a = run_transfers(messages, one.connections, one.transfers),
                      b = run_transfers(plain, one.connections, one.transfers);
    ASSERT_EQ(a.events.size(), 2 * one.transfers.size());
    ASSERT_EQ(b.events.size(), a.events.size());
    for (std::size_t i = 0; i < a.events.size(); ++i) {
      const auto& [when, kind, tag] = a.events[i];
      EXPECT_EQ(std::pair(kind, tag),
                std::pair(std::get<1>(b.events[i]), std::get<2>(b.events[i])));
      // Sent is what is delivered. The time of the last packet is rounded to the picosecond by
      // itself.
      const bool sent = kind == NetworkEvent::Kind::kSent;
      const Time delivered = std::get<0>(b.events[sent ? i + 1 : i]);
      EXPECT_NEAR(static_cast<double>(when.count_ps()), static_cast<double>(delivered.count_ps()),
                  2)
          << "round " << round;
    }
    expect_equal_bytes(a.ports, b.ports);
  }
}

TEST(MessageTransfers, TogetherCarryTheSameAndAreNoFasterThanAlone) {
  for (int round = 0; round < 60; ++round) {
    Case one = random_case(round, Time::us(2));
    std::vector<FlowSpec> each;  // as SimAI has them: the plain engine's are one after the other
    for (Transfer& transfer : one.transfers) {
      each.push_back(one.connections[transfer.connection]);
      transfer.connection = each.size() - 1;
    }
    one.connections = each;
    FlowEngine messages(kTopology, one.options), plain(kTopology, one.options),
        again(kTopology, one.options);
    messages.meet_by_packets();
    again.meet_by_packets();
    const TransferRun a = run_transfers(messages, one.connections, one.transfers),
                      b = run_transfers(plain, one.connections, one.transfers);
    expect_equal_bytes(a.ports, b.ports);
    EXPECT_EQ(messages.live_flows(), 0U);
    ASSERT_EQ(a.events, run_transfers(again, one.connections, one.transfers).events)
        << "round " << round;
    std::vector<Transfer> alone = one.transfers;
    for (std::size_t i = 0; i < alone.size(); ++i) {
      alone[i].when = Time::us(1000) * static_cast<std::int64_t>(i);
    }
    FlowEngine quiet(kTopology, one.options);
    quiet.meet_by_packets();
    std::map<std::pair<NetworkEvent::Kind, std::uint64_t>, Time> least;
    for (const auto& [when, kind, tag] : run_transfers(quiet, one.connections, alone).events) {
      least[{kind, tag}] = when - alone[tag].when;
    }
    ASSERT_EQ(a.events.size(), least.size());
    for (const auto& [when, kind, tag] : a.events) {
      EXPECT_GE(when - one.transfers[tag].when, least.at({kind, tag})) << "round " << round;
    }
  }
}

// What waits behind messages of less than a packet waits as long as these take, not a full packet.
TEST(MessageTransfers, WaitForPacketsAsLongAsTheyAre) {
  for (int round = 0; round < 20; ++round) {
    Case one = random_case(round, Time::us(500));
    for (std::size_t i = 0; i < one.transfers.size(); ++i) {
      one.transfers[i].bytes = Bytes(1);
      one.transfers[i].connection = 7 * i % one.connections.size();
    }
    FlowEngine apart(kTopology, one.options), together(kTopology, one.options);
    apart.meet_by_packets();
    together.meet_by_packets();
    std::map<std::uint64_t, Time> alone;
    for (const auto& [when, kind, tag] :
         run_transfers(apart, one.connections, one.transfers).events) {
      alone[tag] = when - one.transfers[tag].when;
    }
    const Time begin = one.transfers.back().when;
    for (Transfer& transfer : one.transfers) {
      transfer.when = begin;
    }
    const Time packet = Time::seconds(60 * 8 / 200e9);  // 53 B over the slowest link
    const Time all = packet * std::ssize(one.transfers);
    for (const auto& [when, kind, tag] :
         run_transfers(together, one.connections, one.transfers).events) {
      EXPECT_LE(when - begin, alone.at(tag) + all) << "round " << round;
    }
  }
}

TEST(MessageTransfers, DrawWhatLastPacketsWaitBySeed) {
  Case one = random_case(1, Time::us(2));
  FlowEngine first(kTopology, one.options);
  one.options.seed = 2;
  FlowEngine second(kTopology, one.options);
  first.meet_by_packets();
  second.meet_by_packets();
  EXPECT_NE(run_transfers(first, one.connections, one.transfers).events,
            run_transfers(second, one.connections, one.transfers).events);
}

// Where links fail the fluid's law holds again, from the first transfer on.
TEST(MessageTransfers, LinksThatFailMakeThemAFluid) {
  Case one = random_case(1, Time::us(2));
  const LinkFault fault{.links = {LinkId(0)}, .from = Time::us(1'000'000)};
  FlowEngine met(kTopology, one.options), plain(kTopology, one.options);
  met.meet_by_packets();
  met.add_fault(fault);
  plain.add_fault(fault);
  const TransferRun a = run_transfers(met, one.connections, one.transfers),
                    b = run_transfers(plain, one.connections, one.transfers);
  EXPECT_EQ(a.events.size(), 2 * one.transfers.size());
  EXPECT_EQ(a.events, b.events);
}

TEST(MessageTransfers, GoOnAtTheRateThatPortsHave) {
  // A way over an NVSwitch, one over a leaf, and one over a spine; after half of its time alone one
  // of its ports goes at a quarter of its rate: the other half takes four times as long.
  FlowOptions options = simai_flow_options();
  const auto start = [](FlowEngine& engine, NodeId to) {
    engine.start(engine.connect(NodeId(0), to, 0), Bytes(9000 * 20000), Time(), 0);
  };
  const auto delivered = [](FlowEngine& engine) {
    std::vector<NetworkEvent> events;
    while (events.empty() || events.back().kind != NetworkEvent::Kind::kDelivered) {
      engine.advance(Time::max(), events);
    }
    return events.back().when;
  };
  for (const NodeId to : {NodeId(1), NodeId(4), NodeId(5)}) {
    FlowEngine quick(kTopology, options);
    quick.meet_by_packets();
    start(quick, to);
    const Time alone = delivered(quick);
    const std::vector<PortUse> use = quick.port_use();
    int ports = 0;
    for (std::size_t port = 0; port < use.size(); ++port) {
      if (use[port].bytes == Bytes()) {
        continue;
      }
      ++ports;
      FlowEngine slow(kTopology, options);
      slow.meet_by_packets();
      start(slow, to);
      std::vector<NetworkEvent> events;
      slow.advance(alone / 2, events);
      slow.scale_capacity(PortId(port), 0.25);
      EXPECT_NEAR(delivered(slow) / alone, 2.5, 0.01) << "to " << to.value << ", port " << port;
    }
    EXPECT_GE(ports, 2);
  }
}

}  // namespace
}  // namespace lockstep::message_transfers_property_test
