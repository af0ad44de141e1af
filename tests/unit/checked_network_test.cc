// Each promise of a network broken once, by an engine that does as it is told; and real engines,
// whose answers are the same under watch.
#include "simulator/network/checked_network.h"

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/network/flow/flow_engine.h"
#include "tests/support/flow_run.h"
#include "tests/support/random_flows.h"

namespace lockstep::checked_network_test {
namespace {

using Kind = NetworkEvent::Kind;
using ::testing::HasSubstr;

/// Answers advance() from a list, whatever was asked of it.
class ScriptedNetwork : public NetworkEngine {
 public:
  struct Answer {
    Time now;
    std::vector<NetworkEvent> events;
  };
  ScriptedNetwork(std::vector<Answer> answers, std::vector<PortUse> use)
      : answers_(std::move(answers)), use_(std::move(use)) {}

  Time now() const override { return now_; }
  ConnectionId connect(NodeId, NodeId, std::int32_t) override { return ConnectionId(next_++); }
  using NetworkEngine::start;
  void start(ConnectionId, Bytes, Time, std::uint64_t) override {}
  Time advance(Time, std::vector<NetworkEvent>& events) override {
    const Answer& answer = answers_.at(at_++);
    events.insert(events.end(), answer.events.begin(), answer.events.end());
    now_ = answer.now;
    return now_;
  }
  std::vector<PortUse> port_use() const override { return use_; }

 private:
  std::vector<Answer> answers_;
  std::vector<PortUse> use_;
  std::size_t at_ = 0;
  std::int32_t next_ = 0;
  Time now_;
};

/// Two GPUs on one link of 400 Gbps: 1000 bytes take 20 ns.
Topology pair() {
  testing::FabricMaker maker;
  maker.link(maker.gpu(0), maker.gpu(1));
  return std::move(maker.topology);
}

/// What is said of one transfer of 1000 bytes with tag 7, started at 10 ns, with these answers.
std::string said(const std::vector<ScriptedNetwork::Answer>& answers,
                 std::vector<PortUse> use = {{Bytes(1062), Time::ns(22)}, {}}) {
  const Topology topology = pair();
  try {
    CheckedNetwork network(std::make_unique<ScriptedNetwork>(answers, std::move(use)), topology);
    network.start(network.connect(NodeId(0), NodeId(1), 0), Bytes(1000), Time::ns(10), 7);
    std::vector<NetworkEvent> events;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      network.advance(Time::max(), events);
    }
    (void)network.port_use();
  } catch (const InternalError& error) {
    return error.what();
  }
  return "all is well";
}

NetworkEvent event(std::int64_t ns, Kind kind, std::uint64_t tag = 7) {
  return {Time::ns(ns), tag, kind};
}

ScriptedNetwork::Answer sent(std::int64_t ns) { return {Time::ns(ns), {event(ns, Kind::kSent)}}; }
ScriptedNetwork::Answer delivered(std::int64_t ns) {
  return {Time::ns(ns), {event(ns, Kind::kDelivered)}};
}

TEST(CheckedNetwork, IsContentWithWhatIsRight) {
  EXPECT_EQ(said({sent(30), delivered(530)}), "all is well");
}

TEST(CheckedNetwork, SeesAClockThatGoesBack) {
  EXPECT_THAT(said({sent(30), {Time::ns(29), {}}}), HasSubstr("went back from 30000 to 29000 ps"));
}

TEST(CheckedNetwork, SeesAnEventOfAnotherTime) {
  EXPECT_THAT(said({{Time::ns(40), {event(35, Kind::kSent)}}}), HasSubstr("an event of 35000 ps"));
}

TEST(CheckedNetwork, SeesATransferThatIsSentTwice) {
  EXPECT_THAT(said({sent(30), sent(31)}), HasSubstr("transfer 7 was sent twice"));
}

TEST(CheckedNetwork, SeesATransferThatIsDeliveredBeforeItIsSent) {
  EXPECT_THAT(said({delivered(530)}), HasSubstr("delivered before it was sent"));
}

TEST(CheckedNetwork, SeesAnEventOfNoTransfer) {
  EXPECT_THAT(said({{Time::ns(30), {event(30, Kind::kSent, 8)}}}),
              HasSubstr("transfer 8, which is not under way"));
  EXPECT_THAT(said({sent(30), delivered(530), delivered(531)}), HasSubstr("not under way"));
}

TEST(CheckedNetwork, SeesATransferThatIsFasterThanItsPorts) {
  // 20 ns of wire from 10 ns on: 30 ns at the earliest.
  EXPECT_THAT(said({sent(29), delivered(530)}), HasSubstr("1000 bytes took 19000 ps"));
}

TEST(CheckedNetwork, SeesATransferThatIsLost) {
  EXPECT_THAT(said({sent(30)}), HasSubstr("transfers of 1 tags were never delivered"));
}

TEST(CheckedNetwork, SeesBytesThatNoPortCarried) {
  const Topology topology = pair();
  CheckedNetwork network(
      std::make_unique<ScriptedNetwork>(
          std::vector<ScriptedNetwork::Answer>{
              {Time::us(1000),
               {{Time::us(1000), 7, Kind::kSent}, {Time::us(1000), 7, Kind::kDelivered}}}},
          std::vector<PortUse>{{Bytes(999'000), Time::us(20)}, {}}),
      topology);
  network.start(network.connect(NodeId(0), NodeId(1), 0), Bytes(1'001'000), Time(), 7);
  std::vector<NetworkEvent> events;
  network.advance(Time::max(), events);
  EXPECT_THROW((void)network.port_use(), InternalError);
}

TEST(CheckedNetwork, RefusesWhatCannotBeSent) {
  const Topology topology = pair();
  CheckedNetwork network(std::make_unique<ScriptedNetwork>(std::vector<ScriptedNetwork::Answer>{},
                                                           std::vector<PortUse>{}),
                         topology);
  const ConnectionId connection = network.connect(NodeId(0), NodeId(1), 0);
  EXPECT_THROW(network.start(connection, Bytes(-1), Time(), 8), InternalError);
  EXPECT_THROW(network.start(ConnectionId(1), Bytes(1), Time(), 8), InternalError);
}

TEST(CheckedNetwork, ChangesNothingOfTheFlowEngine) {
  const Topology topology = testing::rail_optimised(4, 4, 2, 2);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    FlowOptions options;
    options.routes.spray = seed % 2 == 1;
    options.wait_for_ack = seed % 3 == 1;
    Rng rng(seed, "checked");
    const auto flows = testing::random_flows(rng, 60, 16, 2'000'000, Time::us(100));
    FlowEngine bare(topology, options);
    auto inner = std::make_unique<FlowEngine>(topology, options);
    inner->certify();
    CheckedNetwork watched(std::move(inner), topology);
    for (const FlowSpec& flow : flows) {
      bare.start(flow);
      watched.start(flow);
    }
    std::vector<NetworkEvent> of_bare, of_watched;
    while (bare.live_flows() > 0 || of_bare.size() < 2 * flows.size()) {
      bare.advance(Time::max(), of_bare);
      watched.advance(Time::max(), of_watched);
    }
    ASSERT_EQ(of_bare.size(), of_watched.size());
    for (std::size_t i = 0; i < of_bare.size(); ++i) {
      ASSERT_EQ(of_bare[i].when, of_watched[i].when);
      ASSERT_EQ(of_bare[i].tag, of_watched[i].tag);
    }
    const auto use = bare.port_use(), checked = watched.port_use();
    for (std::size_t port = 0; port < use.size(); ++port) {
      ASSERT_EQ(use[port].bytes, checked[port].bytes);
    }
  }
}

}  // namespace
}  // namespace lockstep::checked_network_test
