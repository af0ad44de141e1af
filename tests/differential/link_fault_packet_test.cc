// Links that fail in mid-run on the flow engine against the packet engine: collectives over two
// leaves and two spines, on hashed ways, one link between a leaf and a spine down from a drawn
// moment on. Prints the table of docs/models.md.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
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

namespace lockstep::link_fault_packet_test {
namespace {

constexpr Time kRerouting = Time::us(100), kTimeout = Time::us(50);

std::unique_ptr<NetworkEngine> packets(const Topology& topology) {
  PacketOptions options;
  options.program = std::string(LOCKSTEP_BINARY) + "-packet";
  options.lookahead = Time::us(2);
  options.fabric["RetransmitTimeout"] = fmt::format("{}ns", kTimeout.count_ns());
  return std::make_unique<PacketEngine>(topology, options);
}

std::vector<LinkId> fabric_links(const Topology& topology) {
  std::vector<LinkId> links;
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    if (topology.nodes[topology.links[i].a.index()].kind == NodeKind::kSwitch &&
        topology.nodes[topology.links[i].b.index()].kind == NodeKind::kSwitch) {
      links.emplace_back(i);
    }
  }
  return links;
}

TEST(FailingLink, CollectiveTakesAsLongAsWithPackets) {
  const Topology topology = topology_from("plain:g=16,gps=1,nsps=0,npa=8,psn=2,apbw=1600Gbps");
  const std::vector<LinkId> links = fabric_links(topology);
  ASSERT_EQ(links.size(), 4U);
  std::vector<double> errors;
  double longest = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Rng rng(seed, "failing link");
    CollectiveRequest request;
    request.op = seed % 2 == 0 ? CommType::kAllReduce : CommType::kAllToAll;
    request.bytes = Bytes(std::int64_t{32} << 20);
    request.channels = 1;
    LoneCollective collective;
    collective.nodes = topology.gpus();
    collective.bytes = request.bytes;
    collective.send_latency = Time::us(2);
    collective.schedule = std::make_shared<const Schedule>(
        build_schedule(algorithm_named(seed % 2 == 0 ? "ring" : "direct", request.op), request,
                       shape_of_nodes(topology, collective.nodes)));
    const auto time_on = [&](std::unique_ptr<NetworkEngine> network) {
      return run_lone_collective(collective, topology, *network).end.us();
    };
    const double whole = time_on(std::make_unique<FlowEngine>(topology));
    LinkFault fault;
    fault.links = {links[rng.below(links.size())]};
    fault.from = Time::us(rng.between(5, static_cast<std::int64_t>(0.8 * whole)));
    fault.until = rng.below(2) == 0 ? Time::max() : fault.from + Time::us(rng.between(20, 400));
    fault.rerouting = kRerouting;
    collective.faults = {fault};
    const double fluid = time_on(std::make_unique<FlowEngine>(topology));
    const double real = time_on(packets(topology));
    errors.push_back(std::abs(fluid - real) / real);
    longest = std::max(longest, real / whole);
    fmt::print("{}: whole {:.1f} us, failed {:.1f} us, packets {:.1f} us\n",
               seed % 2 == 0 ? "ring" : "all-to-all", whole, fluid, real);
  }
  const double mean =
      std::accumulate(errors.begin(), errors.end(), 0.0) / static_cast<double>(errors.size());
  fmt::print("error: mean {:.1f} %, worst {:.1f} %; failures cost up to {:.2f} times the time\n",
             100 * mean, 100 * std::ranges::max(errors), longest);
  EXPECT_LE(mean, 0.08);
  EXPECT_LE(std::ranges::max(errors), 0.25);
  EXPECT_GE(longest, 1.1);
}

}  // namespace
}  // namespace lockstep::link_fault_packet_test
