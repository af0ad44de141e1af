#include "topologies/servers.h"

namespace lockstep {
namespace {

constexpr auto kFlags =
    std::array<BuilderFlag, 1>{{{"gpus gpu g", FlagKind::kCount, "16", "GPUs", 1, 1 << 20}}} +
    server_flags();

/// Nodes: G GPUs, G / gps * nsps NVSwitches, 1 switch. Links: G * nsps + G.
BuiltTopology build(const FlagValues& flags) {
  const Servers servers = servers_from(flags, flags.count("gpus"));
  BuiltTopology built;
  built.file_name = file_name("single-switch", servers);
  TopologyMaker maker(built.file_name);
  maker.reserve(servers.gpus + servers.nvswitches() + 1, servers.links());
  add_servers(maker, servers);
  const NodeId hub = maker.add_switch();
  link_servers(maker, servers, [&](std::int64_t) { return hub; });
  built.topology = maker.finish(static_cast<std::int32_t>(servers.gpus_per_server));
  return built;
}

}  // namespace

extern const TopologyBuilder kSingleSwitchTopologyBuilder;
const TopologyBuilder kSingleSwitchTopologyBuilder{
    "single-switch", "star", "all NICs on one switch that never blocks", kFlags, build};

}  // namespace lockstep
