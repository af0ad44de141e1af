// The packet engine where a GPU has several ports, NICs or NVLinks, or packets have several ways.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "simulator/network/packet_engine.h"
#include "tests/support/fabrics.h"
#include "tests/support/flow_run.h"
#include "tests/support/packet_options.h"
#include "tests/support/run.h"
#include "topologies/topology_file.h"

namespace lockstep::packet_ports_test {
namespace {

using testing::options_here;

Time delivered(PacketEngine& engine, const std::vector<FlowSpec>& starts) {
  for (const FlowSpec& start : starts) {
    engine.start(start);
  }
  Time last;
  for (const auto& [tag, outcome] : testing::outcomes(testing::run_to_end(engine))) {
    last = std::max(last, outcome.delivered);
  }
  return last;
}

// Two NICs a GPU: sprayed, each carries half, in half the time. 1000 packets of 83.16 ns on two
// links of 500 ns; the NICs of a hashed connection are one.
TEST(PacketPorts, SpraysOverTheNicsOfAGpu) {
  const Topology topology = testing::dual_plane(2, 2, 3);
  PacketOptions options = options_here();
  for (const bool spray : {false, true}) {
    options.routes.spray = spray;
    PacketEngine engine(topology, options);
    const Time end = delivered(engine, {{NodeId(0), NodeId(2), Bytes(4096 * 1000), Time(), 0, 1}});
    EXPECT_EQ(end, Time::ps(((spray ? 500 : 1000) + 1) * std::int64_t{83'160} + 1'000'000));
    EXPECT_EQ(engine.statistics().packets, 1000);
  }
}

// A receiver grants each of its ports by itself: two NICs are two times one.
TEST(PacketPorts, ReceiversGrantByPort) {
  PacketOptions options = options_here();
  options.routes.spray = true;
  const std::vector<FlowSpec> flows{{NodeId(0), NodeId(2), Bytes(4096 * 1000), Time(), 0, 1}};
  PacketEngine free(testing::dual_plane(2, 2, 3), options);
  options.congestion = "receiver";
  PacketEngine granted(testing::dual_plane(2, 2, 3), options);
  EXPECT_EQ(delivered(granted, flows), delivered(free, flows));
}

// Two messages of a packet each take the two NICs in turn, so that neither waits.
TEST(PacketPorts, SmallMessagesTakeTheNicsInTurn) {
  PacketOptions options = options_here();
  options.routes.spray = true;
  PacketEngine engine(testing::dual_plane(2, 2, 3), options);
  const ConnectionId connection = engine.connect(NodeId(0), NodeId(2), 0);
  engine.start(connection, Bytes(4096), Time(), 1);
  engine.start(connection, Bytes(4096), Time(), 2);
  const auto outcomes = testing::outcomes(testing::run_to_end(engine));
  EXPECT_EQ(outcomes.at(1).delivered, Time::ps(2 * 83'160 + 1'000'000));
  EXPECT_EQ(outcomes.at(2).delivered, outcomes.at(1).delivered);
}

// The same with a NIC that has a tenth of the rate: what goes over the other one is through early,
// and is told in its turn, when all before it are: one part can be the last of several messages.
TEST(PacketPorts, MessagesWaitForThoseBeforeThem) {
  for (const NodeId slow : {NodeId(6), NodeId(8)}) {  // the leaves of GPU 0
    Topology topology = testing::dual_plane(2, 2, 3);
    for (Link& link : topology.links) {
      if (link.a == NodeId(0) && link.b == slow) {
        LinkClass tenth = topology.link_classes.front();
        tenth.set_rate(Bandwidth::gbps(40));
        link.link_class = static_cast<decltype(link.link_class)>(std::ssize(topology.link_classes));
        topology.link_classes.push_back(tenth);
      }
    }
    PacketOptions options = options_here();
    options.routes.spray = true;
    PacketEngine engine(topology, options);
    const ConnectionId connection = engine.connect(NodeId(0), NodeId(2), 0);
    constexpr std::uint64_t kMessages = 40;
    for (std::uint64_t tag = 1; tag <= kMessages; ++tag) {
      engine.start(connection, Bytes(4096), Time(), tag);
    }
    const auto outcomes = testing::outcomes(testing::run_to_end(engine));
    ASSERT_EQ(outcomes.size(), kMessages);
    for (std::uint64_t tag = 2; tag <= kMessages; ++tag) {
      EXPECT_GE(outcomes.at(tag).delivered, outcomes.at(tag - 1).delivered) << tag;
    }
    EXPECT_GT(outcomes.at(kMessages).delivered, Time::ps(19 * std::int64_t{831'600}));
  }
}

// What goes over NVLinks is spread over all NVSwitches, sprayed or not; SimAI's flavour hashes it.
TEST(PacketPorts, NvLinksAreSpreadOverAllNvSwitches) {
  const Topology topology = topology_from("single-switch:g=4,gps=4,nsps=4,nvbw=400Gbps,nl=500ns");
  PacketOptions options = options_here();
  const std::vector<FlowSpec> starts{{NodeId(0), NodeId(1), Bytes(4096 * 1000), Time(), 0, 1}};
  PacketEngine spread(topology, options);
  EXPECT_EQ(delivered(spread, starts), Time::ps(251 * std::int64_t{83'160} + 1'000'000));
  options.routes.hash_nvlinks = true;
  PacketEngine hashed(topology, options);
  EXPECT_EQ(delivered(hashed, starts), Time::ps(1001 * std::int64_t{83'160} + 1'000'000));
  EXPECT_TRUE(simai_packet_options().routes.hash_nvlinks);
}

// One NIC of two is down from 20 us on, which is known 10 us later: its part goes over the other.
TEST(PacketPorts, PartsLeaveANicThatFails) {
  const Topology topology = testing::dual_plane(2, 2, 3);  // leaf 6 has plane A's NICs of 0 and 2
  PacketOptions options = options_here();
  options.routes.spray = true;
  options.fabric["RetransmitTimeout"] = "50us";
  options.rerouting = Time::us(10);
  options.faults = {{NodeId(0), NodeId(6), Time::us(20), Time::max(), 1}};
  PacketEngine engine(topology, options);
  const ConnectionId connection = engine.connect(NodeId(0), NodeId(2), 0);
  engine.start(connection, Bytes(4096 * 1000), Time(), 1);
  engine.start(connection, Bytes(4096 * 1000), Time::us(300), 2);
  engine.start({NodeId(0), NodeId(2), Bytes(4096 * 1000), Time::us(500), 1, 3});
  const auto outcomes = testing::outcomes(testing::run_to_end(engine));
  const Time one_nic = Time::ps(1001 * std::int64_t{83'160} + 1'000'000);
  EXPECT_GT(outcomes.at(1).delivered, one_nic - Time::us(20));
  EXPECT_LT(outcomes.at(1).delivered, one_nic + Time::us(70));
  EXPECT_EQ(outcomes.at(2).delivered, Time::us(300) + one_nic);
  EXPECT_EQ(outcomes.at(3).delivered, Time::us(500) + one_nic);
}

// From a leaf over two spines, of which the first has one link to the destination's leaf and the
// second three. As in the fluid each hop splits evenly: half goes over each spine, not a quarter.
TEST(PacketPorts, SpraysEvenlyAtEachHop) {
  testing::FabricMaker maker;
  const NodeId source = maker.gpu(0), destination = maker.gpu(1);
  const NodeId from = maker.leaf(), to = maker.leaf(), one = maker.spine(), three = maker.spine();
  maker.link(source, from);
  maker.link(to, destination);
  const LinkId up = maker.link(from, one);
  maker.link(from, three);
  maker.link(one, to);
  const LinkId down = maker.link(three, to);
  maker.link(three, to);
  maker.link(three, to);
  PacketOptions options = options_here();
  options.routes.spray = true;
  PacketEngine engine(maker.topology, options);
  engine.start({source, destination, Bytes(4096 * 1200), Time(), 0, 1});
  testing::run_to_end(engine);
  const std::vector<PortUse> use = engine.port_use();
  EXPECT_EQ(use[2 * up.index()].bytes, Bytes(600 * (4096 + 62)));
  EXPECT_EQ(use[2 * down.index()].bytes, Bytes(200 * (4096 + 62)));
}

// 20 switches in the middle, each with 20 links on to the destination's leaf: 400 ways, of which a
// queue pair takes 256. All 20 get their part of 5120 packets, 12 or 13 of 256 each.
TEST(PacketPorts, SpraysOverAllNextHopsOfManyWays) {
  testing::FabricMaker maker;
  const NodeId source = maker.gpu(0), destination = maker.gpu(1);
  const NodeId from = maker.leaf(), to = maker.leaf();
  maker.link(source, from);
  maker.link(to, destination);
  std::vector<LinkId> up;
  for (int i = 0; i < 20; ++i) {
    const NodeId middle = maker.spine();
    up.push_back(maker.link(from, middle));
    for (int j = 0; j < 20; ++j) {
      maker.link(middle, to);
    }
  }
  PacketOptions options = options_here();
  options.routes.spray = true;
  PacketEngine engine(maker.topology, options);
  engine.start({source, destination, Bytes(4096 * 5120), Time(), 0, 1});
  testing::run_to_end(engine);
  const std::vector<PortUse> use = engine.port_use();
  for (const LinkId link : up) {
    const std::int64_t packets = use[2 * link.index()].bytes.count() / (4096 + 62);
    EXPECT_GE(packets, 20 * 12);
    EXPECT_LE(packets, 20 * 13);
  }
}

}  // namespace
}  // namespace lockstep::packet_ports_test
