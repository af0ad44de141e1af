#include "simulator/network/flow/link_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/network/flow/flow_engine.h"
#include "tests/support/flow_run.h"

namespace lockstep::link_faults_test {
namespace {

using testing::FabricMaker;
using testing::outcomes;
using testing::run_to_end;
using testing::star;

const FlowOptions kBare = testing::bare<FlowOptions>();
constexpr std::int64_t kS = 1'000'000;  // 20 us alone at 400 Gbps

TEST(LinkFaults, OverlapsCountAndComeInOrder) {
  LinkFaults faults(3);
  faults.add({{LinkId(1)}, Time::us(10), Time::us(30), Time::us(5)}, Time());
  faults.add({{LinkId(1), LinkId(2)}, Time::us(20), Time::us(40), Time::max()}, Time());
  EXPECT_EQ(faults.next(), Time::us(10));
  EXPECT_FALSE(faults.step());
  EXPECT_TRUE(faults.is_down(LinkId(1)));
  EXPECT_EQ(faults.next(), Time::us(15));
  EXPECT_TRUE(faults.step());
  EXPECT_THAT(faults.avoided(), ::testing::ElementsAre(0, 1, 0));
  EXPECT_FALSE(faults.step());  // at 20 us
  EXPECT_TRUE(faults.is_down(LinkId(2)));
  EXPECT_FALSE(faults.step());  // at 30 us the second fault still holds link 1
  EXPECT_TRUE(faults.is_down(LinkId(1)));
  EXPECT_EQ(faults.down_since(LinkId(1)), Time::us(10));
  EXPECT_TRUE(faults.step());  // at 35 us; of the second fault nobody learns
  EXPECT_THAT(faults.avoided(), ::testing::ElementsAre(0, 0, 0));
  EXPECT_EQ(faults.next(), Time::us(40));
  EXPECT_FALSE(faults.step());
  EXPECT_FALSE(faults.is_down(LinkId(1)));
  EXPECT_EQ(faults.next(), Time::max());
}

/// GPU 0 and leaf 2, GPU 1 and leaf 3, and two spines between the leaves, 4 and 5: links 0 and 1
/// are the GPUs', 2 + 2 s and 3 + 2 s those of spine s.
Topology two_ways() {
  FabricMaker maker;
  maker.gpu(0);
  maker.gpu(1);
  const NodeId left = maker.leaf(), right = maker.leaf();
  maker.link(NodeId(0), left);
  maker.link(NodeId(1), right);
  for (int i = 0; i < 2; ++i) {
    const NodeId spine = maker.spine();
    maker.link(left, spine);
    maker.link(spine, right);
  }
  return maker.topology;
}

FlowSpec flow(std::uint64_t tag, Time start = Time()) {
  return {NodeId(0), NodeId(1), Bytes(kS), start, 0, tag};
}

/// Of the link that the flow from GPU 0 to GPU 1 takes up to its spine, and of the other.
std::pair<LinkId, LinkId> way_of_the_flow(const Topology& topology) {
  Router router(topology);
  Route route;
  router.route({NodeId(0), NodeId(1), 10000, 100, 0}, route);
  const LinkId used(route.hops.at(1).port.value / 2);
  return {used, LinkId(used.value == 2 ? 4 : 2)};
}

/// When the one flow has left, with this fault of the link that it takes.
Time sent_with(LinkFault fault, bool spray = false) {
  const Topology topology = two_ways();
  FlowOptions options = kBare;
  options.routes.spray = spray;
  FlowEngine engine(topology, options);
  fault.links = {way_of_the_flow(topology).first};
  engine.add_fault(fault);
  engine.start(flow(0));
  return outcomes(run_to_end(engine)).at(0).sent;
}

TEST(FailingLink, FlowTakesTheOtherWayWhenItLearnsOfIt) {
  // 5 us done; from 15 us on the other 15 us.
  EXPECT_EQ(sent_with({{}, Time::us(5), Time::max(), Time::us(10)}), Time::us(30));
  // Learns at once; before anything has started; after all has left.
  EXPECT_EQ(sent_with({{}, Time::us(5), Time::max(), Time()}), Time::us(20));
  EXPECT_EQ(sent_with({{}, Time(), Time::max(), Time::us(3)}), Time::us(23));
  EXPECT_EQ(sent_with({{}, Time::us(20), Time::max(), Time::us(3)}), Time::us(20));
}

TEST(FailingLink, FlowWaitsForALinkThatComesBackBefore) {
  EXPECT_EQ(sent_with({{}, Time::us(5), Time::us(12), Time::us(1000)}), Time::us(27));
  EXPECT_EQ(sent_with({{}, Time::us(5), Time::us(5000), Time::max()}), Time::us(5015));
}

TEST(FailingLink, SprayedFlowWaitsAndThenTakesWhatIsLeft) {
  EXPECT_EQ(sent_with({{}, Time::us(5), Time::max(), Time::us(10)}, true), Time::us(30));
}

TEST(FailingLink, WaysComeBackAndPortsCarryWhatWentOverThem) {
  // Flow 0 goes 4 us over its link, waits 2, goes the other way from 6 us on. The link is back at
  // 9 us, known at 11: so 5 us on the other way, and the last 11 us of 20 on the first. A second
  // message on the same connection follows it there.
  const Topology topology = two_ways();
  const auto [used, other] = way_of_the_flow(topology);
  FlowEngine engine(topology, kBare);
  engine.add_fault({{used}, Time::us(4), Time::us(9), Time::us(2)});
  const ConnectionId connection = engine.connect(NodeId(0), NodeId(1), 0);
  engine.start(connection, Bytes(kS), Time(), 0);
  engine.start(connection, Bytes(kS), Time(), 1);
  const auto result = outcomes(run_to_end(engine));
  EXPECT_EQ(result.at(0).sent, Time::us(22));
  // Four hops of 500 ns, and three more times 20 ns of a packet.
  EXPECT_EQ(result.at(0).delivered, Time::us(24) + Time::ns(60));
  EXPECT_EQ(result.at(1).sent, Time::us(42));
  const std::vector<PortUse> use = engine.port_use();
  EXPECT_EQ(use[0].bytes, Bytes(2 * kS));
  EXPECT_EQ(use[2 * used.index()].bytes, Bytes(kS * 35 / 20));
  EXPECT_EQ(use[2 * other.index()].bytes, Bytes(kS * 5 / 20));
}

TEST(FailingLink, LatencyIsThatOfTheNewWay) {
  Topology topology = two_ways();
  const auto [used, other] = way_of_the_flow(topology);
  topology.links[other.index()].link_class =
      static_cast<std::int32_t>(topology.link_classes.size());
  topology.link_classes.push_back({Bandwidth::gbps(400), Time::us(7), 0, "", "", ""});
  FlowEngine engine(topology, kBare);
  engine.add_fault({{used}, Time::us(5), Time::max(), Time()});
  engine.start(flow(0));
  EXPECT_EQ(outcomes(run_to_end(engine)).at(0).delivered,
            Time::us(20) + Time::ns(3 * 500 + 60) + Time::us(7));
}

TEST(FailingLink, OthersTakeWhatTheWaitingFlowLeaves) {
  // Two senders to one receiver share its port; the link of the first is away from 10 to 20 us. At
  // 10 us each has kS / 4; the second alone has kS * 3/4 at 20 us; then half again: it ends at
  // 30 us with the first at kS / 2, which needs 10 us alone.
  const Topology topology = star(3);
  FlowEngine engine(topology, kBare);
  engine.add_fault({{LinkId(1)}, Time::us(10), Time::us(20), Time::max()});
  engine.start({NodeId(1), NodeId(0), Bytes(kS), Time(), 0, 1});
  engine.start({NodeId(2), NodeId(0), Bytes(kS), Time(), 0, 2});
  const auto result = outcomes(run_to_end(engine));
  EXPECT_EQ(result.at(2).sent, Time::us(30));
  EXPECT_EQ(result.at(1).sent, Time::us(40));
}

TEST(FailingLink, WhoHasNoOtherWayIsNamed) {
  const Topology topology = star(3);
  FlowEngine engine(topology, kBare);
  engine.add_fault({{LinkId(1)}, Time::us(3), Time::max(), Time::us(1)});
  engine.start({NodeId(1), NodeId(0), Bytes(kS), Time(), 0, 7});
  engine.start({NodeId(1), NodeId(2), Bytes(kS), Time::us(50), 0, 8});  // made when it is down
  engine.start({NodeId(2), NodeId(0), Bytes(kS), Time(), 0, 9});
  const auto result = outcomes(run_to_end(engine));
  EXPECT_EQ(result.size(), 1U);
  EXPECT_TRUE(result.contains(9));
  const std::vector<StuckTransfer> stuck = engine.stuck();
  ASSERT_EQ(stuck.size(), 2U);
  EXPECT_EQ(stuck[0].tag, 7U);
  EXPECT_EQ(stuck[1].tag, 8U);
  EXPECT_EQ(stuck[0].link, LinkId(1));
  EXPECT_EQ(stuck[0].since, Time::us(3));
}

TEST(FailingLink, NobodyWaitsForFaultsThatAreStillToCome) {
  const Topology topology = star(2);
  FlowEngine engine(topology, kBare);
  engine.add_fault({{LinkId(0)}, Time::us(500), Time::us(900), Time::us(1)});
  engine.start({NodeId(0), NodeId(1), Bytes(kS), Time(), 0, 1});
  EXPECT_EQ(run_to_end(engine).size(), 2U);
  std::vector<NetworkEvent> events;
  EXPECT_EQ(engine.advance(Time::max(), events), Time::us(21) + Time::ns(20));
  // With a limit the clock goes there, and what starts then finds links as they are then.
  EXPECT_EQ(engine.advance(Time::us(600), events), Time::us(600));
  engine.start({NodeId(0), NodeId(1), Bytes(kS), Time::us(600), 0, 2});
  EXPECT_EQ(outcomes(run_to_end(engine)).at(2).sent, Time::us(920));
}

TEST(FailingLink, EmptyMessagesWaitAsWell) {
  const Topology topology = star(2);
  FlowEngine engine(topology, kBare);
  engine.add_fault({{LinkId(0)}, Time(), Time::us(9), Time::max()});
  engine.start({NodeId(0), NodeId(1), Bytes(0), Time::us(1), 0, 1});
  EXPECT_EQ(outcomes(run_to_end(engine)).at(1).sent, Time::us(9));
}

}  // namespace
}  // namespace lockstep::link_faults_test
