// The window term of the flow engine (window_limit.h) against the packet engine.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "simulator/collectives/choose.h"
#include "simulator/network/flow/flow_engine.h"
#include "simulator/network/packet_engine.h"
#include "simulator/replay/lone_collective.h"
#include "tests/support/run.h"
#include "topologies/topology_file.h"

namespace lockstep::window_packet_test {
namespace {

PacketOptions packet_options(std::int64_t window, std::int64_t ack_interval) {
  PacketOptions packet;
  packet.program = std::string(LOCKSTEP_BINARY) + "-packet";
  packet.congestion = "none";
  packet.fabric["Window"] = std::to_string(window);
  packet.fabric["AckInterval"] = std::to_string(ack_interval);
  return packet;
}

/// The moment at which the last of these transfers of equal size is delivered; all start at 0.
Time last_delivery(NetworkEngine& engine, const std::vector<std::pair<NodeId, NodeId>>& pairs,
                   Bytes bytes) {
  for (const auto& [from, to] : pairs) {
    engine.start({from, to, bytes, Time()});
  }
  Time last;
  std::vector<NetworkEvent> events;
  for (std::size_t left = pairs.size(); left > 0;) {
    events.clear();
    engine.advance(Time::max(), events);
    for (const NetworkEvent& event : events) {
      if (event.kind == NetworkEvent::Kind::kDelivered) {
        last = event.when;
        --left;
      }
    }
  }
  return last;
}

double error(const Topology& topology, const std::vector<std::pair<NodeId, NodeId>>& pairs,
             Bytes bytes, const PacketOptions& packet) {
  FlowOptions flow;
  flow.transport = transport_of(packet, topology, flow.payload);
  FlowEngine fluid(topology, flow);
  PacketEngine packets(topology, packet);
  return last_delivery(fluid, pairs, bytes) / last_delivery(packets, pairs, bytes) - 1;
}

// Windows of a packet to twice the bandwidth-delay product, an ACK for every packet to every 16th,
// over 2 to 6 hops, one NVLink among them or not.
TEST(WindowLimit, OfALoneTransferIsThatOfThePackets) {
  Rng rng(1, "windows");
  double worst = 0, limited = 0;
  for (int i = 0; i < 200; ++i) {
    const char* fabrics[] = {"single-switch:g=2,gps=1,nsps=0", "plain:g=8,gps=1,nsps=0,npa=4,psn=1",
                             "fat-tree:k=4", "Spectrum-X:g=8"};
    const Topology topology = topology_from(fabrics[rng.between(0, 3)]);
    const std::vector<NodeId> gpus = topology.gpus();
    const std::int64_t window = std::llround(std::exp2(12 + 7 * rng.uniform()));
    const PacketOptions packet = packet_options(window, std::int64_t{1} << rng.between(0, 4));
    const Bytes bytes(std::llround(std::exp2(10 + 13 * rng.uniform())));
    const double size = std::abs(error(topology, {{gpus.front(), gpus.back()}}, bytes, packet));
    worst = std::max(worst, size);
    EXPECT_LE(size, 2e-3) << window << " " << packet.fabric.at("AckInterval") << " "
                          << bytes.count() << " " << topology.name;
    FlowEngine free(topology, {});
    FlowOptions flow;
    flow.transport = transport_of(packet, topology, flow.payload);
    FlowEngine fluid(topology, flow);
    limited += last_delivery(fluid, {{gpus.front(), gpus.back()}}, bytes) >
                       last_delivery(free, {{gpus.front(), gpus.back()}}, bytes)
                   ? 1
                   : 0;
  }
  fmt::print("200 lone transfers, {} limited by their window: worst error {:.4f} %\n", limited,
             100 * worst);
  EXPECT_GT(limited, 60);
}

// 2 to 12 senders to one receiver. The windows together fill the link, and it is shared fairly; or
// they do not, and each is as if it were alone but for the packets of the others that come at the
// same moment: the senders keep the step in which they started.
TEST(WindowLimit, OfSendersToOneIsThatOfThePackets) {
  Rng rng(2, "windows");
  double worst = 0;
  for (int i = 0; i < 60; ++i) {
    const std::int64_t senders = rng.between(2, 12);
    const Topology topology =
        topology_from(fmt::format("single-switch:g={},gps=1,nsps=0", senders + 1));
    const std::vector<NodeId> gpus = topology.gpus();
    std::vector<std::pair<NodeId, NodeId>> pairs;
    for (std::size_t from = 1; from < gpus.size(); ++from) {
      pairs.emplace_back(gpus[from], gpus.front());
    }
    const std::int64_t window = std::llround(std::exp2(12 + 7 * rng.uniform()));
    const Bytes bytes(std::llround(std::exp2(18 + 4 * rng.uniform())));
    const double size =
        error(topology, pairs, bytes, packet_options(window, std::int64_t{1} << rng.between(0, 3)));
    worst = std::max(worst, std::abs(size));
    EXPECT_LE(std::abs(size), 0.08) << senders << " senders, window " << window;
  }
  fmt::print("60 incasts with windows: worst error {:.2f} %\n", 100 * worst);
}

// A ring all-reduce whose windows are too small: folded, in full and packet by packet.
TEST(WindowLimit, FoldsBySymmetry) {
  const Topology topology = topology_from("plain:g=40,gps=1,nsps=0,npa=4,psn=4");
  CollectiveRequest request;
  request.op = CommType::kAllReduce;
  request.bytes = Bytes(32 << 20);
  LoneCollective collective;
  collective.nodes = topology.gpus();
  collective.bytes = request.bytes;
  collective.send_latency = Time::us(1);
  ScheduleCache schedules;
  collective.schedule = schedules.get(request, shape_of_nodes(topology, collective.nodes));
  PacketOptions packet = packet_options(40'000, 4);
  packet.lookahead = collective.send_latency;
  packet.fabric["Buffer"] = "0";  // no limit, no PFC
  FlowOptions flow;
  const LoneCollectiveResult free = run_on_flow_engine(collective, topology, flow, {});
  flow.transport = transport_of(packet, topology, flow.payload);
  const LoneCollectiveResult folded =
      run_on_flow_engine(collective, topology, flow, {.verify = true});
  EXPECT_EQ(folded.classes, free.classes);
  EXPECT_LT(folded.classes, folded.slots / 4);
  EXPECT_GT(folded.end, free.end * 2);
  FlowEngine fluid(topology, flow);
  EXPECT_EQ(run_lone_collective(collective, topology, fluid).end, folded.end);
  PacketEngine packets(topology, packet);
  const Time by_packets = run_lone_collective(collective, topology, packets).end;
  fmt::print("ring with small windows: {:+.2f} %\n", 100 * (folded.end / by_packets - 1));
  EXPECT_NEAR(folded.end / by_packets, 1, 0.01);
}

}  // namespace
}  // namespace lockstep::window_packet_test
