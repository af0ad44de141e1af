#include <fmt/format.h>

#include "base/error.h"
#include "topologies/servers.h"

namespace lockstep {
namespace {

using enum FlagKind;

constexpr auto kFlags =
    std::array<BuilderFlag, 5>{{
        {"racks", kCount, "8", "racks; gpus-per-server is the GPUs of a rack", 1, 1 << 16},
        {"rails", kCount, "4", "GPU i of a rack is on rail i mod rails", 1, 1024},
        {"racks-per-leaf rpl", kCount, "8", "racks that share leaf switches, one a rail", 1,
         1 << 16},
        {"spine-switches psw_switch_num psn", kCount, "18", "spine switches", 1, 1 << 16},
        {"uplink ap_bandwidth apbw", kRate, "3200Gbps", "rate from leaf to spine", 0, 0},
    }} +
    server_flags({.gpus_per_server = "72", .nvlink = "7200Gbps", .gpu_type = "GB200"});

/// Racks that are one NVLink domain each (NVL72: 72 GPUs), joined by rail-optimised leaves and
/// spines. The NVSwitches of a rack are one node by default, at the GPU's whole rate (900 GB/s each
/// way); nvswitches-per-server with a rate for each models them apart.
///
/// Nodes: G GPUs, their NVSwitches, ceil(racks / racks-per-leaf) * rails leaves, S spines. Links:
/// G * nsps + G, then leaves * S.
BuiltTopology build(const FlagValues& flags) {
  const std::int64_t racks = flags.count("racks");
  const std::int64_t rails = flags.count("rails");
  const std::int64_t in_rack = flags.count("gpus-per-server");
  const std::int64_t sharing = flags.count("racks-per-leaf");
  const std::int64_t spines = flags.count("spine-switches");
  if (rails > in_rack) {
    throw Error(fmt::format("{} rails for racks of {} GPUs", rails, in_rack))
        .field("flag rails")
        .expected("at most the GPUs of a rack");
  }
  const Servers servers = servers_from(flags, racks * in_rack);
  const std::int64_t leaves = (racks + sharing - 1) / sharing * rails;
  BuiltTopology built;
  built.file_name = file_name("nvlink-racks", servers);
  TopologyMaker maker(built.file_name);
  maker.reserve(servers.gpus + servers.nvswitches() + leaves + spines,
                servers.links() + leaves * spines);
  add_servers(maker, servers);
  const std::int64_t first_leaf = add_switches(maker, leaves);
  const std::int64_t first_spine = add_switches(maker, spines);
  link_servers(maker, servers, [&](std::int64_t gpu) {
    return node_id(first_leaf + gpu / in_rack / sharing * rails + gpu % in_rack % rails);
  });
  const std::int32_t uplink =
      maker.link_class(flags.text("uplink"), servers.delay, servers.error_rate);
  for (std::int64_t leaf = 0; leaf < leaves; ++leaf) {
    for (std::int64_t j = 0; j < spines; ++j) {
      maker.link(node_id(first_leaf + leaf), node_id(first_spine + j), uplink);
    }
  }
  built.topology = maker.finish(static_cast<std::int32_t>(in_rack));
  return built;
}

}  // namespace

extern const TopologyBuilder kNvlinkRacksTopologyBuilder;
const TopologyBuilder kNvlinkRacksTopologyBuilder{
    "nvlink-racks", "nvl72", "racks that are one NVLink domain each, such as NVL72", kFlags, build};

}  // namespace lockstep
