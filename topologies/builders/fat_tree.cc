#include <fmt/format.h>

#include "base/error.h"
#include "topologies/servers.h"

namespace lockstep {
namespace {

using enum FlagKind;

constexpr auto kFlags =
    std::array<BuilderFlag, 2>{{
        {"ports k", kCount, "8", "ports of every switch (k), even; k^3/4 GPUs", 2, 160},
        {"uplink ap_bandwidth apbw", kRate, "400Gbps", "rate between switches", 0, 0},
    }} +
    server_flags();

/// The k-ary fat tree (Al-Fares, Loukissas, Vahdat: A Scalable, Commodity Data Center Network
/// Architecture, SIGCOMM 2008): k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 cores.
///
/// Nodes: G = k^3/4 GPUs, their NVSwitches, k^2/2 edges, k^2/2 aggregations, k^2/4 cores. Links:
/// G * nsps + G, then k^3/4 from edge to aggregation and k^3/4 from aggregation to core.
BuiltTopology build(const FlagValues& flags) {
  const std::int64_t k = flags.count("ports");
  if (k % 2 != 0) {
    throw Error(fmt::format("a fat tree of switches with {} ports", k))
        .field("flag ports")
        .expected("an even number of ports");
  }
  const std::int64_t half = k / 2;
  const Servers servers = servers_from(flags, k * half * half);
  BuiltTopology built;
  built.file_name = file_name(fmt::format("fat-tree_k{}", k), servers);
  TopologyMaker maker(built.file_name);
  maker.reserve(servers.gpus + servers.nvswitches() + 2 * k * half + half * half,
                servers.links() + 2 * k * half * half);
  add_servers(maker, servers);
  const std::int64_t edges = add_switches(maker, k * half);
  const std::int64_t aggregations = add_switches(maker, k * half);
  const std::int64_t cores = add_switches(maker, half * half);
  link_servers(maker, servers, [&](std::int64_t gpu) { return node_id(edges + gpu / half); });
  const std::int32_t uplink =
      maker.link_class(flags.text("uplink"), servers.delay, servers.error_rate);
  for (std::int64_t edge = 0; edge < k * half; ++edge) {
    const std::int64_t pod = edge / half;
    for (std::int64_t j = 0; j < half; ++j) {
      maker.link(node_id(edges + edge), node_id(aggregations + pod * half + j), uplink);
    }
  }
  for (std::int64_t aggregation = 0; aggregation < k * half; ++aggregation) {
    for (std::int64_t j = 0; j < half; ++j) {
      maker.link(node_id(aggregations + aggregation),
                 node_id(cores + aggregation % half * half + j), uplink);
    }
  }
  built.topology = maker.finish(static_cast<std::int32_t>(servers.gpus_per_server));
  return built;
}

}  // namespace

extern const TopologyBuilder kFatTreeTopologyBuilder;
const TopologyBuilder kFatTreeTopologyBuilder{
    "fat-tree", "fattree", "k-ary fat tree of edge, aggregation and core switches", kFlags, build};

}  // namespace lockstep
