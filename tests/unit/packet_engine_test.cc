// The packet engine through its pipe: hand-computed times, and the same as the flow engine where
// nothing queues.
#include "simulator/network/packet_engine.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "simulator/network/checked_network.h"
#include "simulator/network/flow/flow_engine.h"
#include "tests/support/fabrics.h"
#include "tests/support/flow_run.h"
#include "tests/support/packet_options.h"
#include "tests/support/run.h"
#include "topologies/topology_file.h"

namespace lockstep::packet_engine_test {
namespace {

using ::testing::HasSubstr;

using testing::options_here;

// Two hops of 400 Gbps and 500 ns; 10 packets of 4096 + 62 B, 83160 ps each:
// 10 * 83160 until the last bit has left, then 500 ns, another packet, 500 ns.
TEST(PacketEngine, OneTransferToThePicosecond) {
  const Topology topology = testing::star(2);
  for (const Time lookahead : {Time(), Time::us(5)}) {
    PacketOptions options = options_here();
    options.lookahead = lookahead;
    PacketEngine engine(topology, options);
    const Time start = lookahead + Time::ns(100);
    engine.start({NodeId(0), NodeId(1), Bytes(40960), start, 0, 7});
    const auto outcomes = testing::outcomes(testing::run_to_end(engine));
    EXPECT_EQ(outcomes.at(7).sent, start + Time::ps(831'600));
    EXPECT_EQ(outcomes.at(7).delivered, start + Time::ps(831'600 + 500'000 + 83'160 + 500'000));
    const std::vector<PortUse> use = engine.port_use();
    EXPECT_EQ(use[0].bytes, Bytes(41580));
    EXPECT_EQ(use[0].busy, Time::ps(831'600));
    EXPECT_EQ(engine.statistics().packets, 10);
    EXPECT_EQ(engine.statistics().drops, 0);
  }
}

// Equal transfers of whole packets by two senders into one receiver: packets alternate, so fluid
// and packets end within a packet of each other.
TEST(PacketEngine, AgreesWithFluidOnSharing) {
  const Topology topology = testing::star(4);
  PacketEngine packet(topology, options_here());
  FlowEngine flow(topology);
  for (NetworkEngine* engine :
       {static_cast<NetworkEngine*>(&packet), static_cast<NetworkEngine*>(&flow)}) {
    for (std::int32_t source = 1; source < 4; ++source) {
      engine->start({NodeId(source), NodeId(0), Bytes(4096 * 200), Time::ns(10 * source), 0,
                     static_cast<std::uint64_t>(source)});
    }
  }
  const auto packets = testing::outcomes(testing::run_to_end(packet));
  const auto fluid = testing::outcomes(testing::run_to_end(flow));
  Time last_packet, last_fluid;
  for (std::uint64_t tag = 1; tag < 4; ++tag) {
    last_packet = std::max(last_packet, packets.at(tag).delivered);
    last_fluid = std::max(last_fluid, fluid.at(tag).delivered);
  }
  EXPECT_NEAR(last_packet / last_fluid, 1.0, 0.002);
}

// The only link of a GPU is down from 20 us to 120 us: what was under way is lost and sent again
// after a timeout of 50 us. Down for good, the transfer is given up and named.
TEST(PacketEngine, LinkThatFails) {
  const Topology topology = testing::star(2);
  PacketOptions options = options_here();
  options.fabric["RetransmitTimeout"] = "50us";
  options.faults = {{NodeId(0), NodeId(2), Time::us(20), Time::us(120), 1}};
  const Bytes bytes(4096 * 1000);
  {
    PacketEngine engine(topology, options);
    engine.start({NodeId(0), NodeId(1), bytes, Time(), 0, 1});
    const Time end = testing::outcomes(testing::run_to_end(engine)).at(1).delivered;
    const Time alone = Time::ps(1001 * 83'160 + 1'000'000);
    EXPECT_GT(end, alone + Time::us(100));
    EXPECT_LT(end, alone + Time::us(100) + Time::us(2 * 50));
    EXPECT_GT(engine.statistics().drops, 0);
  }
  options.fabric["RetryLimit"] = "3";
  options.fabric["RetransmitTimeout"] = "5us";
  {  // nobody gives up on a link that will be back
    PacketEngine engine(topology, options);
    engine.start({NodeId(0), NodeId(1), bytes, Time(), 0, 1});
    EXPECT_GT(testing::outcomes(testing::run_to_end(engine)).at(1).delivered, Time::us(120));
  }
  options.fabric["RetransmitTimeout"] = "50us";
  options.faults.front().until = Time::max();
  PacketEngine engine(topology, options);
  engine.start({NodeId(0), NodeId(1), bytes, Time(), 0, 1});
  EXPECT_THAT([&] { testing::run_to_end(engine); },
              ::testing::ThrowsMessage<Error>(HasSubstr("from node 0 to node 1")));
  options.faults.front().b = NodeId(1);
  EXPECT_THAT([&] { PacketEngine(topology, options); },
              ::testing::ThrowsMessage<Error>(HasSubstr("a fault names the link")));
}

// Away from 20 to 30 us: the sender, whose window is full by then, goes on a time-out after the
// last ACK that it got.
TEST(PacketEngine, TimeOutCountsFromTheLastProgress) {
  const Topology topology = testing::star(2);
  PacketOptions options = options_here();
  options.fabric["RetransmitTimeout"] = "50us";
  options.faults = {{NodeId(0), NodeId(2), Time::us(20), Time::us(30), 1}};
  PacketEngine engine(topology, options);
  engine.start({NodeId(0), NodeId(1), Bytes(4096 * 1000), Time(), 0, 1});
  const Time end = testing::outcomes(testing::run_to_end(engine)).at(1).delivered;
  const Time alone = Time::ps(1001 * 83'160 + 1'000'000);
  EXPECT_NEAR((end - alone).us(), 50, 3);
}

// The link is back when the last of its faults has ended.
TEST(PacketEngine, FaultsOfALinkThatOverlap) {
  const Topology topology = testing::star(2);
  const auto end_with = [&](std::vector<PacketOptions::LinkFault> faults) {
    PacketOptions options = options_here();
    options.fabric["RetransmitTimeout"] = "50us";
    options.rerouting = Time::us(10);
    options.faults = std::move(faults);
    PacketEngine engine(topology, options);
    engine.start({NodeId(0), NodeId(1), Bytes(4096 * 1000), Time(), 0, 1});
    return testing::outcomes(testing::run_to_end(engine)).at(1).delivered;
  };
  const auto fault = [](std::int64_t from, std::int64_t until) {
    return PacketOptions::LinkFault{NodeId(0), NodeId(2), Time::us(from), Time::us(until), 1};
  };
  const Time once = end_with({fault(20, 320)});
  EXPECT_GT(once, Time::us(320));
  EXPECT_EQ(end_with({fault(20, 120), fault(70, 320)}), once);
  EXPECT_EQ(end_with({fault(20, 320), fault(70, 120)}), once);
}

// Two leaves and two spines; a spine's link is down from 20 us on, which who sprays over both
// spines learns 50 us later. The rest takes the other spine, at the NIC's full rate as before.
TEST(PacketEngine, SprayedPacketsLeaveAWayThatFails) {
  const Topology topology =
      topology_from("plain:g=4,gps=1,nsps=0,npa=2,psn=2,asn=2", nullptr);  // leaves 4, 5
  PacketOptions options = options_here();
  options.routes.spray = true;
  options.fabric["RetransmitTimeout"] = "50us";
  options.fabric["RetryLimit"] = "5";
  options.rerouting = Time::us(50);
  options.faults = {{NodeId(4), NodeId(6), Time::us(20), Time::max(), 1}};
  PacketEngine engine(topology, options);
  const Bytes bytes(4096 * 5000);
  engine.start({NodeId(0), NodeId(2), bytes, Time(), 0, 1});
  engine.start({NodeId(0), NodeId(3), bytes, Time::us(600), 0, 2});  // a new connection
  const auto outcomes = testing::outcomes(testing::run_to_end(engine));
  const Time alone = Time::ps(5003 * std::int64_t{83'160} + 2'000'000);
  EXPECT_GT(outcomes.at(1).delivered, alone + Time::us(50));
  EXPECT_LT(outcomes.at(1).delivered, alone + Time::us(50) + Time::us(2 * 50));
  EXPECT_EQ(outcomes.at(2).delivered, Time::us(600) + alone);
}

// A connection that is made while the only link of its GPU is down waits for it.
TEST(PacketEngine, NewConnectionsWaitForLinksThatAreDown) {
  for (const bool spray : {false, true}) {
    PacketOptions options = options_here();
    options.routes.spray = spray;
    options.fabric["RetransmitTimeout"] = "50us";
    options.rerouting = Time::us(10);
    options.faults = {{NodeId(0), NodeId(3), Time::us(20), Time::us(220), 1}};
    const Topology topology = testing::star(3);
    PacketEngine engine(topology, options);
    engine.start({NodeId(1), NodeId(2), Bytes(4096), Time::us(80), 0, 0});
    std::vector<NetworkEvent> events;
    while (engine.advance(Time::us(90), events) < Time::us(90)) {
    }
    engine.start({NodeId(0), NodeId(1), Bytes(4096), Time::us(100), 0, 1});
    const Time end = testing::outcomes(testing::run_to_end(engine)).at(1).delivered;
    EXPECT_GT(end, Time::us(220));
    EXPECT_LT(end, Time::us(220 + 50 + 2));
  }
}

// The GPU's link has half its bandwidth from 20 us on: of 1000 packets of 83.16 ns 240 have left by
// then, the others take twice as long.
TEST(PacketEngine, LinkThatBecomesSlower) {
  const Topology topology = testing::star(2);
  PacketOptions options = options_here();
  options.fabric["Window"] = "67108864";
  PacketEngine engine(topology, options);
  EXPECT_TRUE(engine.plan_change(Time::us(20), PortId(0), 0.5, 0));
  engine.start({NodeId(0), NodeId(1), Bytes(4096 * 1000), Time(), 0, 1});
  const Time end = testing::outcomes(testing::run_to_end(engine)).at(1).sent;
  EXPECT_NEAR(static_cast<double>(end.count_ps()), 2 * 83'160'000.0 - 20'000'000.0, 83'160);
  EXPECT_FALSE(engine.plan_change(Time::us(500), PortId(0), 1e-9, 0));  // as good as down
}

// From 20 us on a link loses one packet of a hundred; all arrives, later.
TEST(PacketEngine, LinkThatLosesPackets) {
  const Topology topology = testing::star(2);
  PacketOptions options = options_here();
  options.fabric["Recovery"] = "SelectiveRepeat";
  PacketEngine engine(topology, options);
  engine.plan_change(Time::us(20), PortId(0), 1, 0.01);
  engine.start({NodeId(0), NodeId(1), Bytes(4096 * 1000), Time(), 0, 1});
  const Time end = testing::outcomes(testing::run_to_end(engine)).at(1).delivered;
  EXPECT_GT(end, Time::ps(1001 * 83'160 + 1'000'000));
  EXPECT_GT(engine.statistics().drops, 0);
  EXPECT_LT(engine.statistics().drops, 50);
}

// SimAI's first transfers, 8 GPUs of a server with 8 channels each, all at once: GPUs 0 and 4 send
// channel 0 first and then 7 to 1, the others 7 to 0. Later ones go in the order of channels. Each
// is one packet, so that they leave in the order in which they began.
TEST(PacketEngine, FirstTransfersGoInSimaisOrder) {
  testing::FabricMaker maker;
  maker.topology.gpus_per_server = 8;
  for (std::int32_t i = 0; i < 8; ++i) {
    maker.gpu(0);
  }
  const NodeId leaf = maker.leaf();
  for (std::int32_t i = 0; i < 8; ++i) {
    maker.link(NodeId(i), leaf);
  }
  PacketOptions options = simai_packet_options();
  options.program = std::string(LOCKSTEP_BINARY) + "-packet";
  PacketEngine engine(maker.topology, options);
  for (const bool first : {true, false}) {
    for (std::int32_t gpu = 0; gpu < 8; ++gpu) {
      for (std::int32_t channel = 0; channel < 8; ++channel) {
        engine.start({NodeId(gpu), NodeId((gpu + 1) % 8), Bytes(5000), Time::us(first ? 1 : 900),
                      channel, static_cast<std::uint64_t>(gpu * 8 + channel)});
      }
    }
    std::vector<std::vector<std::uint64_t>> left(8);
    for (const NetworkEvent& event : testing::run_to_end(engine)) {
      if (event.kind == NetworkEvent::Kind::kSent) {
        left[event.tag / 8].push_back(event.tag % 8);
      }
    }
    for (std::size_t gpu = 0; gpu < 8; ++gpu) {
      if (!first) {
        EXPECT_THAT(left[gpu], ::testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7)) << gpu;
      } else if (gpu % 4 == 0) {
        EXPECT_THAT(left[gpu], ::testing::ElementsAre(0, 7, 6, 5, 4, 3, 2, 1)) << gpu;
      } else {
        EXPECT_THAT(left[gpu], ::testing::ElementsAre(7, 6, 5, 4, 3, 2, 1, 0)) << gpu;
      }
    }
  }
}

// 600 ports would set apart more than the whole buffer of a switch; they share half of it.
TEST(PacketEngine, SwitchOfManyPorts) {
  const Topology topology = testing::star(600);
  PacketEngine engine(topology, options_here());
  for (std::int32_t source = 1; source < 600; ++source) {
    engine.start({NodeId(source), NodeId(0), Bytes(4096 * 4), Time(), 0, 7});
  }
  EXPECT_EQ(testing::run_to_end(engine).size(), 2U * 599);
  EXPECT_EQ(engine.statistics().drops, 0);
}

// Two senders fill a port from 0 on; a third one's packet, in class 0, comes to the switch at 1.5
// packets' time after theirs and goes behind the two that have begun; ten of each would else be
// before it. A class that there is not is named.
TEST(PacketEngine, TrafficClassesGoInOrder) {
  const Topology topology = testing::star(4);
  PacketOptions options = options_here();
  options.fabric["Classes"] = "3";
  PacketEngine engine(topology, options);
  constexpr std::int64_t kPacket = 83'160, kDelay = 500'000;
  for (std::int32_t source = 1; source < 3; ++source) {
    engine.start(engine.connect(NodeId(source), NodeId(0), 0), Bytes(4096 * 10), Time(), 1);
  }
  engine.start(engine.connect_in_class(NodeId(3), NodeId(0), 0, 0), Bytes(4096),
               Time::ps(3 * kPacket / 2), 7);
  const Time end = testing::outcomes(testing::run_to_end(engine)).at(7).delivered;
  EXPECT_EQ(end, Time::ps(kPacket + kDelay + 3 * kPacket + kDelay));
  PacketEngine other(topology, options);
  other.start(other.connect_in_class(NodeId(3), NodeId(0), 0, 3), Bytes(4096), Time(), 7);
  EXPECT_THAT([&] { testing::run_to_end(other); },
              ::testing::ThrowsMessage<Error>(HasSubstr("traffic class 3")));
}

// Whoever watches it hands classes on.
TEST(PacketEngine, TrafficClassesUnderWatch) {
  const Topology topology = testing::star(2);
  CheckedNetwork engine(std::make_unique<PacketEngine>(topology, options_here()), topology);
  engine.start(engine.connect_in_class(NodeId(0), NodeId(1), 0, 1), Bytes(1), Time(), 1);
  EXPECT_THAT([&] { testing::run_to_end(engine); },
              ::testing::ThrowsMessage<Error>(HasSubstr("a transfer in traffic class 1")));
  EXPECT_FALSE(engine.runs_by_chance());
}

// Where packets may get lost, or transfers begin by lot.
TEST(PacketEngine, KnowsWhetherItRunsByChance) {
  Topology topology = testing::star(2);
  EXPECT_FALSE(PacketEngine(topology, options_here()).runs_by_chance());
  for (const auto& [name, value] :
       {std::pair("LossRate", "0.01"), std::pair("Pfc", "false"), std::pair("SendJitter", "1ns")}) {
    PacketOptions options = options_here();
    options.fabric[name] = value;
    EXPECT_TRUE(PacketEngine(topology, options).runs_by_chance()) << name;
  }
  topology.link_classes.front().error_rate = 0.001;
  EXPECT_TRUE(PacketEngine(topology, options_here()).runs_by_chance());
}

// A packet of ten is lost, so that some come twice and are confirmed twice: the second time when
// the pair, which each message has of its own, is finished already.
TEST(PacketEngine, LosesPacketsOfPairsOfOneMessage) {
  const Topology topology = testing::star(3);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    PacketOptions options = simai_packet_options();
    options.program = options_here().program;
    options.fabric["LossRate"] = "0.1";
    options.seed = seed;
    PacketEngine engine(topology, options);
    for (std::uint64_t tag = 0; tag < 12; ++tag) {
      engine.start({NodeId(tag % 2), NodeId(2), Bytes(200'000), Time(), 0, tag});
    }
    EXPECT_EQ(testing::outcomes(testing::run_to_end(engine)).size(), 12U) << seed;
  }
}

TEST(PacketEngine, StopsAtTheLimitAndGoesOn) {
  const Topology topology = testing::star(2);
  PacketEngine engine(topology, options_here());
  engine.start({NodeId(0), NodeId(1), Bytes(4096), Time(), 0, 1});
  std::vector<NetworkEvent> events;
  EXPECT_EQ(engine.advance(Time::ns(10), events), Time::ns(10));
  EXPECT_TRUE(events.empty());
  EXPECT_EQ(engine.advance(Time::us(1), events), Time::ps(83'160));
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, NetworkEvent::Kind::kSent);
  EXPECT_EQ(engine.advance(Time::us(1), events), Time::us(1));
  EXPECT_EQ(engine.advance(Time::max(), events), Time::ps(1'166'320));
  EXPECT_EQ(engine.advance(Time::max(), events), Time::ps(1'166'320));  // nothing is under way
  EXPECT_EQ(events.size(), 2U);
}

// Uplinks of 100 Gbps to four spines, NICs of 400 Gbps: by hash a transfer gets one uplink, sprayed
// it gets all four, as the fluid does. Packets come out of order and are all there.
TEST(PacketEngine, SpraysOverAllWays) {
  const Topology topology = topology_from("DCN+:g=32,psn=4,npa=16,apbw=100Gbps");
  const std::vector<NodeId> gpus = topology.gpus();
  const Bytes bytes(4096 * 2000);
  const auto time_of = [&](NetworkEngine& engine) {
    engine.start({gpus.front(), gpus.back(), bytes, Time(), 0, 1});
    return testing::outcomes(testing::run_to_end(engine)).at(1).delivered;
  };
  PacketOptions options = options_here();
  PacketEngine hashed(topology, options);
  options.routes.spray = true;
  PacketEngine sprayed(topology, options);
  FlowOptions fluid;
  fluid.routes.spray = true;
  FlowEngine flow(topology, fluid);
  const Time one = time_of(hashed), all = time_of(sprayed), ideal = time_of(flow);
  EXPECT_NEAR(one / all, 4.0, 0.1);
  EXPECT_NEAR(all / ideal, 1.0, 0.02);
  EXPECT_EQ(sprayed.statistics().packets, 2000);
  EXPECT_EQ(sprayed.statistics().drops, 0);
}

// GPU 0 sends to GPU 1 over ports that nobody else uses, while three others fill the port by which
// its ACKs come: those go first, so it takes as long as alone, but for the 250 ACKs of 60 B that
// the data of each 1000 packets which come to GPU 0 meanwhile want of its port. Behind the data
// they would come after the queue, and the window of two round trips of an empty fabric would stop
// the sender.
TEST(PacketEngine, AcksDoNotWaitBehindData) {
  const auto end_of_lone = [](bool first, bool others) {
    PacketOptions options = options_here();
    options.fabric["AckFirst"] = first ? "true" : "false";
    PacketEngine engine(testing::star(5), options);
    engine.start({NodeId(0), NodeId(1), Bytes(4096 * 1000), Time(), 0, 1});
    for (std::int32_t from = 2; others && from < 5; ++from) {
      engine.start({NodeId(from), NodeId(0), Bytes(4096 * 1000), Time(), 0,
                    static_cast<std::uint64_t>(from)});
    }
    return testing::outcomes(testing::run_to_end(engine)).at(1).delivered;
  };
  const Time alone = end_of_lone(true, false);
  EXPECT_EQ(alone, Time::ps(1001 * std::int64_t{83'160} + 1'000'000));
  EXPECT_EQ(end_of_lone(false, false), alone);
  EXPECT_LE(end_of_lone(true, true), alone + Time::ps(250 * 1'200));
  EXPECT_GT(end_of_lone(false, true), alone + alone * 2 / 5);
}

std::string error_of(const PacketOptions& options) {
  try {
    PacketEngine engine(testing::star(2), options);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// Shortest ways over a dragonfly's routers form circles. With little room at the switches everyone
// waits for everyone; with unlimited room nobody is paused.
TEST(PacketEngine, ADeadlockSaysWhatGoesOn) {
  const Topology topology = topology_from("dragonfly:p=4,a=4,gl=1,gps=4");
  const std::vector<NodeId> gpus = topology.gpus();
  for (const char* buffer : {"100000", "0"}) {
    PacketOptions options = options_here();
    options.fabric["Buffer"] = buffer;
    PacketEngine engine(topology, options);
    std::uint64_t tag = 0;
    for (const NodeId source : gpus) {
      for (const NodeId destination : gpus) {
        if (source != destination) {
          engine.start({source, destination, Bytes(5462), Time(), 0, tag++});
        }
      }
    }
    if (std::string_view(buffer) == "0") {
      EXPECT_EQ(testing::outcomes(testing::run_to_end(engine)).size(), tag);
      continue;
    }
    try {
      testing::run_to_end(engine);
      ADD_FAILURE() << "no deadlock";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("a PFC deadlock: these links wait for each other: "));
      EXPECT_THAT(error.what(), HasSubstr("--fabric Buffer=0"));
    }
  }
}

TEST(PacketEngine, NamesWhatItCannotDo) {
  PacketOptions options = options_here();
  options.fabric["Paylod"] = "9000";
  EXPECT_THAT(error_of(options), HasSubstr("no attribute 'Paylod'"));
  options = options_here();
  options.fabric["Payload"] = "many";
  EXPECT_THAT(error_of(options), HasSubstr("Payload of ns3::Fabric cannot be 'many'"));
  options.fabric["Payload"] = "0";
  EXPECT_THAT(error_of(options), HasSubstr("Payload of ns3::Fabric cannot be '0'"));
  options = options_here();
  options.fabric["TieOrder"] = "Alphabetical";
  EXPECT_THAT(error_of(options), HasSubstr("expected: Scheduled|Random"));
  options = options_here();
  options.congestion = "luck";
  EXPECT_THAT(error_of(options), HasSubstr("no congestion control 'luck'"));
  options = options_here();
  options.program = "/nowhere/lockstep-packet";
  EXPECT_THAT(error_of(options), HasSubstr("cannot start"));
  options = options_here();
  options.program = "/bin/false";
  EXPECT_THAT(error_of(options), HasSubstr("has ended unexpectedly, with exit code 1"));
}

// A bit a second, 9 hours a packet: one of them ends, 300 take 115 days, of which 64 bits of
// picoseconds hold 106.
TEST(PacketEngine, TheClockEndsBefore64Bits) {
  Topology topology = testing::star(2);
  for (LinkClass& link : topology.link_classes) {
    link.set_rate(Bandwidth::bits_per_second(1));
  }
  const auto sent = [&](int packets) {
    PacketEngine engine(topology, options_here());
    engine.start({NodeId(0), NodeId(1), Bytes(packets * 4096), Time(), 0, 7});
    return testing::outcomes(testing::run_to_end(engine)).at(7).sent;
  };
  EXPECT_EQ(sent(1), Time::ps(4158 * 8 * 1'000'000'000'000));
  try {
    (void)sent(300);
    ADD_FAILURE() << "it ends";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadInput);
    EXPECT_THAT(error.what(), HasSubstr("end after the clock's 100 days"));
  }
}

TEST(PacketEngine, EndsAProgramThatIsNotLockstepPacket) {
  const testing::ScratchFolder folder;
  PacketOptions options = options_here();
  options.program = folder / "talks";
  const auto script = [&](const std::string& text) {
    write_file(options.program, "#!/bin/sh\n" + text + "\n");
    std::filesystem::permissions(options.program, std::filesystem::perms::owner_all);
    return error_of(options);
  };
  EXPECT_THAT(script("exec yes"), HasSubstr("an answer that makes no sense"));
  EXPECT_THAT(script("yes"), HasSubstr("an answer that makes no sense"));
  EXPECT_THAT(script("kill -9 $$"), HasSubstr("has ended unexpectedly, by signal 9"));
  // Ctrl-C reaches every process of the terminal, and the child may be the first.
  EXPECT_EQ(script("kill -INT $$"), "stopped");
}

}  // namespace
}  // namespace lockstep::packet_engine_test
