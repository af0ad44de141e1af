// Collectives that reduce and multicast in switches, on the flow engine and on the packet engine.
#include <cmath>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "simulator/collectives/choose.h"
#include "simulator/network/flow/flow_engine.h"
#include "simulator/network/packet_engine.h"
#include "simulator/replay/lone_collective.h"
#include "tests/support/run.h"
#include "topologies/topology_file.h"

namespace lockstep::switch_ends_test {
namespace {

TEST(FlowAgainstPacket, ReductionInSwitches) {
  const Topology topology = topology_from("Spectrum-X:g=32");
  for (const char* algorithm : {"nvls", "nvls-tree", "collnet-chain", "collnet-direct"}) {
    for (const std::int64_t mib : {4, 32, 128}) {
      LoneCollective collective;
      collective.nodes = topology.gpus();
      collective.send_latency = Time::us(1);
      collective.bytes = Bytes(mib << 20);
      ScheduleCache schedules;
      collective.schedule = schedules.get({.op = CommType::kAllReduce, .bytes = collective.bytes},
                                          shape_of_nodes(topology, collective.nodes),
                                          &algorithm_named(algorithm, CommType::kAllReduce));
      ASSERT_FALSE(collective.schedule->switches.empty());
      FlowEngine flow(topology);
      PacketOptions options;
      options.program = std::string(LOCKSTEP_BINARY) + "-packet";
      options.congestion = "none";
      options.lookahead = collective.send_latency;
      PacketEngine packet(topology, options);
      const Time by_flow = run_lone_collective(collective, topology, flow).end;
      const Time by_packet = run_lone_collective(collective, topology, packet).end;
      const double error = by_flow / by_packet - 1;
      fmt::print("{:16} {:4} MiB: flow {:9.2f} us, packet {:9.2f} us, {:+.2f} %\n", algorithm, mib,
                 by_flow.us(), by_packet.us(), 100 * error);
      // The trees between servers fill and drain in turn: packets queue where a fluid flows.
      EXPECT_LE(std::abs(error), std::string(algorithm) == "nvls-tree" ? 0.065 : 0.02)
          << algorithm << " " << mib;
    }
  }
}

}  // namespace
}  // namespace lockstep::switch_ends_test
