// A link that loses packets on the flow engine, by formula (stragglers/loss.cc), against the packet
// engine, which loses them: collectives one link of which loses. Packets are drawn, so S there is a
// mean over seeds with its standard error. Prints the table of docs/models.md.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "simulator/collectives/choose.h"
#include "simulator/network/flow/flow_engine.h"
#include "simulator/network/packet_engine.h"
#include "simulator/replay/lone_collective.h"
#include "simulator/replay/straggler_plan.h"
#include "tests/support/run.h"
#include "topologies/topology_file.h"

namespace lockstep::packet_loss_test {
namespace {

constexpr int kSeeds = 12;

std::unique_ptr<NetworkEngine> packets(const Topology& topology, std::uint64_t seed) {
  PacketOptions options;
  options.program = std::string(LOCKSTEP_BINARY) + "-packet";
  options.lookahead = Time::us(2);
  options.seed = seed;
  return std::make_unique<PacketEngine>(topology, options);
}

struct Case {
  CommType op;
  std::string algorithm;
  std::int32_t gpus;
  std::int64_t mib;
  double probability;
};

LoneCollective collective_of(const Case& a_case, const Topology& topology) {
  CollectiveRequest request;
  request.op = a_case.op;
  request.bytes = Bytes(a_case.mib << 20);
  request.channels = 1;
  LoneCollective collective;
  collective.nodes = topology.gpus();
  collective.bytes = request.bytes;
  collective.send_latency = Time::us(2);
  collective.schedule = std::make_shared<const Schedule>(
      build_schedule(algorithm_named(a_case.algorithm, request.op), request,
                     shape_of_nodes(topology, collective.nodes)));
  return collective;
}

/// The changes of `--straggler loss:` on the first GPU's link.
std::vector<NetworkChange> losses(const Case& a_case, const Topology& topology,
                                  const std::string& window = "") {
  StragglerContext context;
  context.node_of_rank = topology.gpus();
  context.server_of_rank.assign(context.node_of_rank.size(), 0);
  context.topology = &topology;
  const std::vector<Straggler> stragglers = {
      Straggler::parse(fmt::format("loss:0-{}:{}{}", a_case.gpus, a_case.probability, window))};
  return StragglerPlan(stragglers, context).changes();
}

// S by formula lies within three standard errors of the mean by packets, give or take 5 %.
TEST(PacketLoss, CostsWhatItCostsWithPackets) {
  for (const Case& a_case : {Case{CommType::kSendRecv, "send", 2, 1, 1e-3},
                             Case{CommType::kSendRecv, "send", 2, 16, 1e-3},
                             Case{CommType::kSendRecv, "send", 2, 16, 1e-2},
                             Case{CommType::kAllReduce, "ring", 8, 1, 1e-3},
                             Case{CommType::kAllReduce, "ring", 8, 16, 1e-3},
                             Case{CommType::kAllReduce, "ring", 8, 16, 1e-2},
                             Case{CommType::kAllToAll, "direct", 8, 16, 1e-3},
                             Case{CommType::kAllToAll, "direct", 8, 16, 1e-2}}) {
    const Topology topology =
        topology_from(fmt::format("plain:g={0},gps=1,nsps=0,npa={0}", a_case.gpus));
    LoneCollective collective = collective_of(a_case, topology);
    const auto time_on = [&](std::unique_ptr<NetworkEngine> network) {
      return run_lone_collective(collective, topology, *network).end.us();
    };
    const double fluid_clean = time_on(std::make_unique<FlowEngine>(topology));
    const double packets_clean = time_on(packets(topology, 1));
    collective.changes = losses(a_case, topology, ":64");
    const double of_64 = time_on(std::make_unique<FlowEngine>(topology)) / fluid_clean;
    collective.changes = losses(a_case, topology);
    const double fluid = time_on(std::make_unique<FlowEngine>(topology)) / fluid_clean;
    double sum = 0, squares = 0;
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      const double slowdown = time_on(packets(topology, seed)) / packets_clean;
      sum += slowdown;
      squares += slowdown * slowdown;
    }
    const double mean = sum / kSeeds;
    const double error = std::sqrt(std::max(0.0, squares / kSeeds - mean * mean) / (kSeeds - 1));
    fmt::print(
        "{} of {} MiB, {} GPUs, p = {:g}: flow {:.3f}, packets {:.3f} +- {:.3f}, W = 64 {:.3f}\n",
        a_case.algorithm, a_case.mib, a_case.gpus, a_case.probability, fluid, mean, error, of_64);
    EXPECT_NEAR(fluid, mean, 3 * error + 0.05);
    if (a_case.probability > 5e-3) {
      EXPECT_GT(mean, 1.5);
    }
  }
}

}  // namespace
}  // namespace lockstep::packet_loss_test
