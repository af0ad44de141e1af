// The flow engine against the packet engine: the same schedule, routes and packet sizes, so the
// difference is what a fluid leaves out (packets in turn, windows, queues). 200 seeded cases:
// collective, size, ranks, channels, fabric. Reported apart: where all ways are free of collisions,
// and where hashed ways may collide.
#include <algorithm>
#include <cmath>
#include <memory>
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

namespace lockstep {
namespace {

struct Fabric {
  const char* topology;
  bool may_collide;
};

constexpr Fabric kFabrics[] = {
    {"Spectrum-X:g=8", false},   // one server
    {"Spectrum-X:g=32", false},  // rings change servers on one rail
    {"Spectrum-X:g=32,nvbw=1440Gbps", false},
    {"DCN+:g=32,psn=4,npa=16", true},  // two racks, four spines
};
constexpr CommType kOps[] = {CommType::kAllReduce, CommType::kAllGather, CommType::kReduceScatter,
                             CommType::kAllToAll};

Time time_of(const LoneCollective& collective, const Topology& topology, NetworkEngine& engine) {
  return run_lone_collective(collective, topology, engine).end;
}

struct Errors {
  std::vector<double> values;
  double at(double share) {
    std::ranges::sort(values);
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
  }
};

TEST(FlowAgainstPacket, RandomCollectives) {
  constexpr int kCases = 200;
  Rng rng(1, "flow against packet");
  Errors free, colliding;
  std::vector<Topology> topologies;
  for (const Fabric& fabric : kFabrics) {
    topologies.push_back(topology_from(fabric.topology));
  }
  for (int i = 0; i < kCases; ++i) {
    const auto which = static_cast<std::size_t>(rng.between(0, 3));
    const Topology& topology = topologies[which];
    LoneCollective collective;
    collective.nodes = topology.gpus();
    collective.send_latency = Time::ns(rng.between(500, 6000));
    CollectiveRequest request;
    request.op = kOps[rng.between(0, 3)];
    request.bytes = Bytes(std::int64_t{1} << rng.between(18, 24)) + Bytes(rng.between(0, 99999));
    // All-to-all sends cross-rail, over hashed ways of the spine.
    const bool collides = kFabrics[which].may_collide ||
                          (request.op == CommType::kAllToAll && collective.nodes.size() > 8);
    collective.bytes = request.bytes;
    const GroupShape shape = shape_of_nodes(topology, collective.nodes);
    ScheduleCache schedules;
    collective.schedule = schedules.get(request, shape);

    FlowEngine flow(topology);
    PacketOptions options;
    options.program = std::string(LOCKSTEP_BINARY) + "-packet";
    options.congestion = "none";
    options.lookahead = collective.send_latency;
    PacketEngine packet(topology, options);
    const Time by_flow = time_of(collective, topology, flow);
    const Time by_packet = time_of(collective, topology, packet);
    const double error = by_flow / by_packet - 1;
    (collides ? colliding : free).values.push_back(std::abs(error));
    if (std::abs(error) > 0.06) {
      fmt::print("{:32} {:14} {:>10} B: flow {:10.2f} us, packet {:10.2f} us, {:+.1f} %\n",
                 kFabrics[which].topology, name_of(request.op), request.bytes.count(), by_flow.us(),
                 by_packet.us(), 100 * error);
    }
  }
  for (auto* errors : {&free, &colliding}) {
    fmt::print("{}: {} cases, median {:.2f} %, p95 {:.2f} %, worst {:.2f} %\n",
               errors == &free ? "no collisions" : "hashed ways", errors->values.size(),
               100 * errors->at(0.5), 100 * errors->at(0.95), 100 * errors->at(1));
  }
  EXPECT_LE(free.at(0.5), 0.02);
  EXPECT_LE(free.at(0.95), 0.06);
}

}  // namespace
}  // namespace lockstep
