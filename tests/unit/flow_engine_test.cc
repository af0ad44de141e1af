#include "simulator/network/flow/flow_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/flow_run.h"
#include "topologies/topology_file.h"

namespace lockstep::flow_engine_test {
namespace {

using testing::FabricMaker;
using testing::Outcome;
using testing::outcomes;
using testing::run_to_end;
using testing::star;
using Kind = NetworkEvent::Kind;

const FlowOptions kBare = testing::bare<FlowOptions>();

FlowSpec flow(int source, int destination, std::int64_t bytes, std::uint64_t tag = 0,
              Time start = Time(), std::int32_t channel = 0) {
  return {NodeId(source), NodeId(destination), Bytes(bytes), start, channel, tag};
}

std::map<std::uint64_t, Outcome> run(const Topology& topology, const FlowOptions& options,
                                     const std::vector<FlowSpec>& flows) {
  FlowEngine engine(topology, options);
  for (const FlowSpec& spec : flows) {
    engine.start(spec);
  }
  return outcomes(run_to_end(engine));
}

// --- one flow, to the picosecond. 8192 B are two packets of 4096 + 62 B: W = 8316 B. At 400 Gbps a
// byte takes 20 ps: W = 166,320 ps, one packet = 83,160 ps.

TEST(FlowEngineAlone, OneHop) {
  FabricMaker maker;
  maker.link(maker.gpu(0), maker.gpu(0));
  // sent = W/C; delivered = sent + 500 ns.
  const auto result = run(maker.topology, {}, {flow(0, 1, 8192)});
  EXPECT_EQ(result.at(0).sent, Time::ps(166'320));
  EXPECT_EQ(result.at(0).delivered, Time::ps(666'320));
}

TEST(FlowEngineAlone, TwoEqualHops) {
  // delivered = sent + 2 * 500 ns + one packet.
  const auto result = run(star(2), {}, {flow(0, 1, 8192)});
  EXPECT_EQ(result.at(0).sent, Time::ps(166'320));
  EXPECT_EQ(result.at(0).delivered, Time::ps(166'320 + 1'000'000 + 83'160));
}

/// GPU 0 -400G- leaf -100G- leaf -200G- GPU 1; delays 100, 200 and 400 ns.
Topology three_hops() {
  FabricMaker maker;
  const NodeId a = maker.gpu(0), b = maker.gpu(1), left = maker.leaf(), right = maker.leaf();
  link(maker, a, left, Bandwidth::gbps(400), Time::ns(100));
  link(maker, left, right, Bandwidth::gbps(100), Time::ns(200));
  link(maker, right, b, Bandwidth::gbps(200), Time::ns(400));
  return maker.topology;
}

TEST(FlowEngineAlone, ThreeUnequalHops) {
  // W / 100 Gbps = 8316 * 80 ps = 665,280 ps; one packet at 400 G 83,160, at 200 G 166,320; the
  // slowest hop adds no packet.
  const auto result = run(three_hops(), {}, {flow(0, 1, 8192)});
  EXPECT_EQ(result.at(0).sent, Time::ps(665'280));
  EXPECT_EQ(result.at(0).delivered, Time::ps(665'280 + 700'000 + 83'160 + 166'320));
}

TEST(FlowEngineAlone, LessThanAPacketIsStoredAndForwardedWhole) {
  // W = 100 + 62 = 162 B: 12,960 ps at 100 G, 3,240 at 400 G, 6,480 at 200 G.
  const auto result = run(three_hops(), {}, {flow(0, 1, 100)});
  EXPECT_EQ(result.at(0).sent, Time::ps(12'960));
  EXPECT_EQ(result.at(0).delivered, Time::ps(12'960 + 700'000 + 3'240 + 6'480));
}

TEST(FlowEngineAlone, ZeroBytesAreOnePacketOfHeader) {
  // W = 62 B: 1,240 ps a hop.
  const auto result = run(star(2), {}, {flow(0, 1, 0)});
  EXPECT_EQ(result.at(0).sent, Time::ps(1'240));
  EXPECT_EQ(result.at(0).delivered, Time::ps(1'240 + 1'000'000 + 1'240));
  // Without a header nothing crosses the wire, but the way remains.
  const auto bare = run(star(2), kBare, {flow(0, 1, 0, 7, Time::ns(3))});
  EXPECT_EQ(bare.at(7).sent, Time::ns(3));
  EXPECT_EQ(bare.at(7).delivered, Time::ns(1'003));
}

TEST(FlowEngineAlone, TheAckComesBack) {
  // Back over 200, 100, 400 Gbps: 60 B take 2,400 + 4,800 + 1,200 ps, and the delays again.
  FlowOptions options;
  options.wait_for_ack = true;
  const auto result = run(three_hops(), options, {flow(0, 1, 8192)});
  EXPECT_EQ(result.at(0).sent, Time::ps(665'280));
  EXPECT_EQ(result.at(0).delivered,
            Time::ps(665'280 + 700'000 + 83'160 + 166'320 + 700'000 + 8'400));
}

TEST(FlowEngineAlone, CompletionIsRoundedUp) {
  // 1000 B at 7 Gbps: 8000 / 7e9 s = 1,142,857.14… ps.
  FabricMaker maker;
  link(maker, maker.gpu(0), maker.gpu(0), Bandwidth::gbps(7), Time());
  EXPECT_EQ(run(maker.topology, kBare, {flow(0, 1, 1000)}).at(0).sent, Time::ps(1'142'858));
}

// --- sharing. Packets of 1000 B without headers; 400 Gbps; S = 1 MB takes 20 us alone.

constexpr std::int64_t kS = 1'000'000;

TEST(FlowEngineShared, TwoFlowsShareAPort) {
  // Both leave GPU 0: half the rate each, 40 us.
  const auto result = run(star(3), kBare, {flow(0, 1, kS, 1), flow(0, 2, kS, 2)});
  EXPECT_EQ(result.at(1).sent, Time::us(40));
  EXPECT_EQ(result.at(2).sent, Time::us(40));
}

TEST(FlowEngineShared, DirectionsDoNotShare) {
  const auto result = run(star(2), kBare, {flow(0, 1, kS, 1), flow(1, 0, kS, 2)});
  EXPECT_EQ(result.at(1).sent, Time::us(20));
  EXPECT_EQ(result.at(2).sent, Time::us(20));
}

TEST(FlowEngineShared, TheLongerOneGetsWhatTheShorterLeaves) {
  // Half rate until the short one has sent S at 40 us; then the other S of the long one: 60 us.
  const auto result = run(star(3), kBare, {flow(0, 1, kS, 1), flow(0, 2, 2 * kS, 2)});
  EXPECT_EQ(result.at(1).sent, Time::us(40));
  EXPECT_EQ(result.at(2).sent, Time::us(60));
}

TEST(FlowEngineShared, OneArrivesHalfWay) {
  // 2 S from 0; at 20 us S is left and another S arrives: both end after 2 S / C more, at 60 us.
  const auto result = run(star(3), kBare, {flow(0, 1, 2 * kS, 1), flow(0, 2, kS, 2, Time::us(20))});
  EXPECT_EQ(result.at(1).sent, Time::us(60));
  EXPECT_EQ(result.at(2).sent, Time::us(60));
}

TEST(FlowEngineShared, ParkingLot) {
  // GPUs 0 … 5 in pairs on three leaves in a row. Flow 1 crosses both leaf links, 2 and 3 one each.
  // All get C/2. Flows 2 and 3 (S/2) end at 20 us; flow 1 (S) has S/2 left: 20 + 10 = 30 us.
  FabricMaker maker;
  for (int i = 0; i < 6; ++i) {
    maker.gpu(i);
  }
  const NodeId leaves[] = {maker.leaf(), maker.leaf(), maker.leaf()};
  for (int i = 0; i < 6; ++i) {
    maker.link(NodeId(i), leaves[i / 2]);
  }
  maker.link(leaves[0], leaves[1]);
  maker.link(leaves[1], leaves[2]);
  const auto result =
      run(maker.topology, kBare, {flow(0, 4, kS, 1), flow(1, 2, kS / 2, 2), flow(3, 5, kS / 2, 3)});
  EXPECT_EQ(result.at(2).sent, Time::us(20));
  EXPECT_EQ(result.at(3).sent, Time::us(20));
  EXPECT_EQ(result.at(1).sent, Time::us(30));
}

TEST(FlowEngineShared, Incast) {
  // 8 senders to one receiver: C/8 each, 160 us, all delivered together one packet and 1 us later.
  std::vector<FlowSpec> flows;
  for (int i = 1; i <= 8; ++i) {
    flows.push_back(flow(i, 0, kS, static_cast<std::uint64_t>(i)));
  }
  for (const auto& [tag, outcome] : run(star(9), kBare, flows)) {
    EXPECT_EQ(outcome.sent, Time::us(160));
    EXPECT_EQ(outcome.delivered, Time::us(160) + Time::us(1) + Time::ns(20));
  }
}

TEST(FlowEngineShared, UnequalCapacities) {
  // GPU 0 sends at most 100 Gbps, GPU 1 400; both to GPU 2 at 400: 100 and 300 Gbps. 1 MB at 100
  // Gbps: 80 us. 3 MB at 300 Gbps: 80 us.
  FabricMaker maker;
  const NodeId slow = maker.gpu(0), fast = maker.gpu(1), sink = maker.gpu(2), leaf = maker.leaf();
  link(maker, slow, leaf, Bandwidth::gbps(100));
  link(maker, fast, leaf, Bandwidth::gbps(400));
  link(maker, sink, leaf, Bandwidth::gbps(400));
  const auto result = run(maker.topology, kBare, {flow(0, 2, kS, 1), flow(1, 2, 3 * kS, 2)});
  EXPECT_EQ(result.at(1).sent, Time::us(80));
  EXPECT_EQ(result.at(2).sent, Time::us(80));
}

/// Two leaves with `gpus` GPUs each (0 … gpus-1 on the left), joined by two spines over links of
/// `rate`.
Topology two_spines(std::int32_t gpus, Bandwidth rate) {
  FabricMaker maker;
  for (std::int32_t i = 0; i < 2 * gpus; ++i) {
    maker.gpu(i);
  }
  const NodeId left = maker.leaf(), right = maker.leaf();
  for (std::int32_t i = 0; i < 2 * gpus; ++i) {
    maker.link(NodeId(i), i < gpus ? left : right);
  }
  for (int i = 0; i < 2; ++i) {
    const NodeId spine = maker.spine();
    link(maker, left, spine, rate);
    link(maker, spine, right, rate);
  }
  return maker.topology;
}

TEST(FlowEngineShared, SprayingUsesAllPaths) {
  // Spine links of 100 Gbps: one path alone gives 100, spraying over two gives 200 Gbps. The last
  // packet takes 4 hops: 20 + 80 + 80 + 20 ns less the slowest, and 2 us of propagation.
  const Topology topology = two_spines(1, Bandwidth::gbps(100));
  FlowOptions sprayed = kBare;
  sprayed.routes.spray = true;
  EXPECT_EQ(run(topology, kBare, {flow(0, 1, kS)}).at(0).sent, Time::us(80));
  const Outcome outcome = run(topology, sprayed, {flow(0, 1, kS)}).at(0);
  EXPECT_EQ(outcome.sent, Time::us(40));
  EXPECT_EQ(outcome.delivered, Time::us(40) + Time::us(2) + Time::ns(120));
}

TEST(FlowEngineShared, HashCollisionHalvesTheRate) {
  // Flows 0 -> 2 and 1 -> 3 over two spines of 400 Gbps: 20 us on different spines, 40 us on one.
  const Topology topology = two_spines(2, Bandwidth::gbps(400));
  Router router(topology);
  const auto spine_of = [&](int source, int destination, std::int32_t channel) {
    Route route;
    router.route({NodeId(source), NodeId(destination), static_cast<std::uint16_t>(10000 + channel),
                  100, channel},
                 route);
    return testing::destination_of(topology, route.hops.at(1).port);
  };
  int collisions = 0;
  for (std::int32_t channel = 0; channel < 16; ++channel) {
    const bool collide = spine_of(0, 2, 0) == spine_of(1, 3, channel);
    collisions += collide ? 1 : 0;
    const auto result =
        run(topology, kBare, {flow(0, 2, kS, 1), flow(1, 3, kS, 2, Time(), channel)});
    EXPECT_EQ(result.at(1).sent, Time::us(collide ? 40 : 20)) << channel;
    EXPECT_EQ(result.at(2).sent, Time::us(collide ? 40 : 20)) << channel;
  }
  EXPECT_THAT(collisions, ::testing::AllOf(::testing::Gt(0), ::testing::Lt(16)));
}

TEST(FlowEngineShared, FreshPortsDrawAgainForEachTransfer) {
  // Transfer k of the pair has source port 10000 + k; its bytes must be on the uplink that the hash
  // gives for that port.
  const Topology topology = two_spines(1, Bandwidth::gbps(400));
  FlowOptions options = kBare;
  options.fresh_ports = true;
  FlowEngine engine(topology, options);
  Router router(topology);
  std::vector<std::int64_t> expected(2 * topology.links.size());
  for (int k = 0; k < 20; ++k) {
    engine.start(flow(0, 1, 1000 + k));
    Route route;
    router.route({NodeId(0), NodeId(1), static_cast<std::uint16_t>(10000 + k), 100, 0}, route);
    for (const Hop& hop : route.hops) {
      expected[hop.port.index()] += 1000 + k;
    }
  }
  run_to_end(engine);
  std::vector<std::int64_t> carried;
  for (const PortUse& use : engine.port_use()) {
    carried.push_back(use.bytes.count());
  }
  EXPECT_EQ(carried, expected);
}

// --- the engine's clock and events

TEST(FlowEngineClock, StopsAtTheLimitAndAtEvents) {
  const Topology topology = star(3);
  FlowEngine engine(topology, kBare);
  std::vector<NetworkEvent> events;
  EXPECT_EQ(engine.advance(Time::max(), events), Time());  // nothing under way
  EXPECT_EQ(engine.advance(Time::us(5), events), Time::us(5));
  engine.start(flow(0, 1, kS, 1, Time::us(10)));
  EXPECT_EQ(engine.advance(Time::us(15), events), Time::us(15));
  EXPECT_TRUE(events.empty());
  // A second flow at 15 us: 3/4 S are left to the first, S/4 of which go in 10 us at half rate …
  engine.start(flow(0, 2, kS / 4, 2, Time::us(15)));
  EXPECT_EQ(engine.advance(Time::max(), events), Time::us(25));
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].tag, 2U);
  EXPECT_EQ(events[0].kind, Kind::kSent);
  // … and the rest alone: 25 + 10 us, before which flow 2 arrives.
  EXPECT_EQ(engine.advance(Time::max(), events), Time::us(26) + Time::ns(20));
  EXPECT_EQ(engine.advance(Time::max(), events), Time::us(35));
  EXPECT_EQ(events.back().tag, 1U);
  EXPECT_EQ(engine.live_flows(), 0U);
}

TEST(FlowEngineClock, TiesGoByOrderOfStart) {
  const Topology topology = star(8);
  FlowEngine engine(topology, kBare);
  for (const int i : {3, 1, 2, 0}) {
    engine.start(flow(i, i + 4, kS, static_cast<std::uint64_t>(10 + i)));
  }
  std::vector<std::uint64_t> order;
  for (const NetworkEvent& event : run_to_end(engine)) {
    order.push_back(event.tag);
  }
  EXPECT_EQ(order, (std::vector<std::uint64_t>{13, 11, 12, 10, 13, 11, 12, 10}));
}

TEST(FlowEngineClock, SentComesBeforeDeliveredAtOneMoment) {
  FabricMaker maker;
  link(maker, maker.gpu(0), maker.gpu(0), Bandwidth::gbps(400), Time());
  FlowEngine engine(maker.topology, kBare);
  engine.start(flow(0, 1, kS, 1));
  std::vector<NetworkEvent> events;
  EXPECT_EQ(engine.advance(Time::max(), events), Time::us(20));
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].kind, Kind::kSent);
  EXPECT_EQ(events[1].kind, Kind::kDelivered);
}

TEST(FlowEngineClock, ManyChangesOfRateDoNotDrift) {
  // One flow of 300 MB at 7 Gbps beside 10,000 of 1000 B that come and go; all bytes of the port
  // cross at 7 Gbps without a gap: (300e6 + 10e6) * 8 / 7e9 s = 354,285,714,285.7 ps.
  FabricMaker maker;
  link(maker, maker.gpu(0), maker.gpu(0), Bandwidth::gbps(7), Time());
  std::vector<FlowSpec> flows = {flow(0, 1, 300'000'000)};
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    flows.push_back(flow(0, 1, 1000, i + 1, Time::us(3) * static_cast<std::int64_t>(i)));
  }
  const auto result = run(maker.topology, kBare, flows);
  EXPECT_NEAR(static_cast<double>(result.at(0).sent.count_ps()), 354'285'714'285.7, 10'001);
}

TEST(FlowEngineClock, ReportsWhatPortsCarried) {
  const Topology topology = star(3);
  FlowEngine engine(topology, kBare);
  engine.start(flow(0, 1, kS, 1));
  engine.start(flow(2, 1, kS, 2, Time::us(10)));
  std::vector<NetworkEvent> events;
  // After 16 us: 10 us alone, 6 us shared: flow 1 has 500 + 150 kB, flow 2 150 kB.
  engine.advance(Time::us(16), events);
  std::vector<PortUse> use = engine.port_use();
  EXPECT_EQ(use[0].bytes, Bytes(650'000));  // GPU 0 up
  EXPECT_EQ(use[4].bytes, Bytes(150'000));  // GPU 2 up
  EXPECT_EQ(use[3].bytes, Bytes(800'000));  // GPU 1 down
  EXPECT_EQ(use[3].busy, Time::us(16));
  EXPECT_EQ(use[1].bytes, Bytes(0));
  run_to_end(engine);
  use = engine.port_use();
  EXPECT_EQ(use[3].bytes, Bytes(2 * kS));
  EXPECT_EQ(use[3].busy, Time::us(40));
}

// --- SimAI's flavour

TEST(FlowEngineSimai, FullPacketsTakeWholeNanoseconds) {
  // 9000 + 52 B at 2880 Gbps: 25.14 ns, cut to 25. Ten packets: 250 ns. Delivery: 2 x 25 ns of
  // delay, 25 ns at the second hop, and the ACK's 50 ns: its 60 B take 0.17 ns, cut to 0.
  FabricMaker maker;
  const NodeId a = maker.gpu(0), b = maker.gpu(0), nvswitch = maker.nvswitch(0);
  link(maker, a, nvswitch, Bandwidth::gbps(2880), Time::ns(25));
  link(maker, b, nvswitch, Bandwidth::gbps(2880), Time::ns(25));
  const auto result = run(maker.topology, simai_flow_options(), {flow(0, 1, 90'000)});
  EXPECT_EQ(result.at(0).sent, Time::ns(250));
  EXPECT_EQ(result.at(0).delivered, Time::ns(250 + 50 + 25 + 50));
}

TEST(FlowEngineSimai, OneStepOfAnEightGpuAllGather) {
  // One step of SimAI's ring all-gather of 20 MiB on 8 GPUs: on every port 8 flows of 327,680 B.
  // W = 327,680 + 37 * 52 = 329,604 B; 8 W at 9052 B per 25 ns = 7282.49 ns; + 125 ns as above.
  // SimAI itself needs 93,705 ns for 7 steps with 6,010 ns of start latency each: 7,376.4 ns.
  FabricMaker maker;
  std::vector<FlowSpec> flows;
  for (int i = 0; i < 8; ++i) {
    maker.gpu(0);
  }
  const NodeId nvswitch = maker.nvswitch(0);
  for (int i = 0; i < 8; ++i) {
    link(maker, NodeId(i), nvswitch, Bandwidth::gbps(2880), Time::ns(25));
    for (int channel = 0; channel < 8; ++channel) {
      flows.push_back(flow(i, (i + 1) % 8, 327'680, flows.size(), Time(), channel));
    }
  }
  const auto result = run(maker.topology, simai_flow_options(), flows);
  ASSERT_EQ(result.size(), 64U);
  for (const auto& [tag, outcome] : result) {
    EXPECT_EQ(outcome.delivered.count_ns(), 7'407);
    EXPECT_NEAR(outcome.delivered.us(), 93.705 / 7 - 6.010, 0.005 * 7.376);
  }
}

TEST(FlowEngineSimai, LinksFasterThanAPacketANanosecondKeepTheirRate) {
  // 9052 B at 100 Tbps: 0.72 ns. Ten packets: 7.2416 ns.
  FabricMaker maker;
  link(maker, maker.gpu(0), maker.gpu(0), Bandwidth::gbps(100'000), Time());
  EXPECT_EQ(run(maker.topology, simai_flow_options(), {flow(0, 1, 90'000)}).at(0).sent,
            Time::ps(7242));
}

// --- what is refused

std::string refusal(const Topology& topology, const FlowSpec& spec) {
  FlowEngine engine(topology);
  try {
    engine.start(spec);
    run_to_end(engine);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(FlowEngineErrors, NameTheFault) {
  using ::testing::HasSubstr;
  Topology topology = star(3);
  EXPECT_THAT(refusal(topology, flow(1, 1, 8)), HasSubstr("from node 1 to itself"));
  EXPECT_THAT(refusal(topology, flow(0, 4, 8)), HasSubstr("names node 4"));
  EXPECT_THAT(refusal(topology, flow(-1, 1, 8)), HasSubstr("names node -1"));
  EXPECT_EQ(refusal(topology, flow(0, 3, 8)), "accepted");  // a switch that adds
  EXPECT_EQ(refusal(topology, flow(3, 0, 8)), "accepted");
  EXPECT_THAT(refusal(topology, flow(0, 1, -1)), HasSubstr("size of a transfer is -1"));
  EXPECT_THAT(refusal(topology, flow(0, 1, INT64_MAX)), HasSubstr("range"));
  // 1e18 B at 400 Gbps: 2e7 s = 231 days.
  EXPECT_THAT(refusal(topology, flow(0, 1, 1'000'000'000'000'000'000)), HasSubstr("106 days"));
  topology.link_classes[0].rate = Bandwidth();
  EXPECT_THAT(refusal(topology, flow(0, 1, 8)),
              HasSubstr("crosses link 0 (node 0 to node 3), which has no bandwidth"));
}

TEST(FlowEngineErrors, RefusesPacketsWithoutPayload) {
  const Topology topology = star(2);
  FlowOptions options;
  options.payload = Bytes(0);
  EXPECT_THROW(FlowEngine(topology, options), Error);
  options = {};
  options.header = Bytes(-1);
  EXPECT_THROW(FlowEngine(topology, options), Error);
}

TEST(FlowEngineErrors, RefusesThePast) {
  const Topology topology = star(2);
  FlowEngine engine(topology, kBare);
  std::vector<NetworkEvent> events;
  engine.advance(Time::us(1), events);
  EXPECT_THROW(engine.start(flow(0, 1, 8)), InternalError);
}

// Two transfers of 125,000 B on a connection of 100 Gbps without headers take 10 us each, one after
// the other; on two connections they share it and end together.
TEST(FlowEngineConnections, CarryOneTransferAfterTheOther) {
  const Topology topology = topology_from("single-switch:g=2,gps=1,bw=100Gbps,l=0ns,nsps=0");
  FlowOptions options;
  options.header = Bytes();
  const Bytes bytes(125'000);
  for (const bool one : {true, false}) {
    FlowEngine engine(topology, options);
    const ConnectionId first = engine.connect(NodeId(0), NodeId(1), 0);
    const ConnectionId second = one ? first : engine.connect(NodeId(0), NodeId(1), 0);
    engine.start(first, bytes, Time(), 1);
    engine.start(second, bytes, Time(), 2);
    std::vector<NetworkEvent> events;
    while (events.size() < 4) {
      engine.advance(Time::max(), events);
    }
    std::map<std::uint64_t, Time> sent;
    for (const NetworkEvent& event : events) {
      if (event.kind == NetworkEvent::Kind::kSent) {
        sent[event.tag] = event.when;
      }
    }
    EXPECT_EQ(sent[1], one ? Time::us(10) : Time::us(20));
    EXPECT_EQ(sent[2], Time::us(20));
  }
}

// A link that is cut to a quarter when half of the bits have left: 5 us and 4 times 5 us.
TEST(FlowEngineConnections, FollowALinkThatSlowsDown) {
  const Topology topology = topology_from("single-switch:g=2,gps=1,bw=100Gbps,l=0ns,nsps=0");
  FlowOptions options;
  options.header = Bytes();
  FlowEngine engine(topology, options);
  engine.start({NodeId(0), NodeId(1), Bytes(125'000), Time(), 0, 7});
  std::vector<NetworkEvent> events;
  engine.advance(Time::us(5), events);
  EXPECT_TRUE(events.empty());
  for (std::size_t port = 0; port < 2 * topology.links.size(); ++port) {
    engine.set_capacity(PortId(port), 25e9);
  }
  engine.advance(Time::max(), events);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events[0].when, Time::us(25));
  for (const PortUse& use : engine.port_use()) {  // all of that, not 10 or 40 us
    EXPECT_EQ(use.busy, use.bytes > Bytes(0) ? Time::us(25) : Time());
  }
}

}  // namespace
}  // namespace lockstep::flow_engine_test
