#include <fmt/format.h>

#include "base/error.h"
#include "topologies/servers.h"

namespace lockstep {
namespace {

using enum FlagKind;

constexpr auto kFlags =
    std::array<BuilderFlag, 8>{{
        {"gpus gpu g", kCount, "1024", "GPUs in all pods", 1, 1 << 20},
        {"pods", kCount, "2", "pods, all alike", 1, 4096},
        {"rail-optimised rail-optimized ro", kSwitch, "true", "one leaf switch for each rail", 0,
         0},
        {"gpus-per-leaf nics_per_aswitch npa", kCount, "64", "GPU ports of a leaf switch", 1,
         1 << 20},
        {"spine-switches psw_switch_num psn", kCount, "8", "spine switches in each pod", 1,
         1 << 16},
        {"core-switches csn", kCount, "16",
         "core switches (super-spines), a multiple of the spines of a pod", 1, 1 << 20},
        {"uplink ap_bandwidth apbw", kRate, "400Gbps", "rate from leaf to spine", 0, 0},
        {"core-rate cbw", kRate, "400Gbps", "rate from spine to core", 0, 0},
    }} +
    server_flags();

/// Pods of leaves and spines under a tier of cores: spine j of every pod is linked to the cores
/// j * C / S to (j + 1) * C / S - 1, for S spines in a pod and C cores.
///
/// Nodes: G GPUs, their NVSwitches, P * L leaves and P * S spines pod by pod, C cores. Links:
/// G * nsps + G, then P * L * S from leaf to spine and P * C from spine to core.
BuiltTopology build(const FlagValues& flags) {
  const std::int64_t pods = flags.count("pods");
  const Servers servers = servers_from(flags, flags.count("gpus"));
  if (servers.gpus % (pods * servers.gpus_per_server) != 0) {
    throw Error(fmt::format("{} servers do not fill {} pods alike",
                            servers.gpus / servers.gpus_per_server, pods))
        .field("flag pods")
        .expected("a divisor of the number of servers");
  }
  const std::int64_t spines = flags.count("spine-switches");
  const std::int64_t cores = flags.count("core-switches");
  if (cores % spines != 0) {
    throw Error(fmt::format("{} cores cannot be shared out evenly among {} spines", cores, spines))
        .field("flag core-switches")
        .expected("a multiple of spine-switches");
  }
  const std::int64_t rails = flags.on("rail-optimised") ? servers.gpus_per_server : 1;
  const std::int64_t segment = rails * flags.count("gpus-per-leaf");
  const std::int64_t in_pod = servers.gpus / pods;
  const std::int64_t leaves = (in_pod + segment - 1) / segment * rails;
  BuiltTopology built;
  built.file_name = file_name(fmt::format("pods_{}", pods), servers);
  TopologyMaker maker(built.file_name);
  maker.reserve(servers.gpus + servers.nvswitches() + pods * (leaves + spines) + cores,
                servers.links() + pods * (leaves * spines + cores));
  add_servers(maker, servers);
  const std::int64_t first_leaf = add_switches(maker, pods * leaves);
  const std::int64_t first_spine = add_switches(maker, pods * spines);
  const std::int64_t first_core = add_switches(maker, cores);
  link_servers(maker, servers, [&](std::int64_t gpu) {
    const std::int64_t i = gpu % in_pod;
    return node_id(first_leaf + gpu / in_pod * leaves + i / segment * rails + i % rails);
  });
  const std::int32_t uplink =
      maker.link_class(flags.text("uplink"), servers.delay, servers.error_rate);
  for (std::int64_t leaf = 0; leaf < pods * leaves; ++leaf) {
    for (std::int64_t j = 0; j < spines; ++j) {
      maker.link(node_id(first_leaf + leaf), node_id(first_spine + leaf / leaves * spines + j),
                 uplink);
    }
  }
  const std::int32_t core_rate =
      maker.link_class(flags.text("core-rate"), servers.delay, servers.error_rate);
  const std::int64_t share = cores / spines;
  for (std::int64_t spine = 0; spine < pods * spines; ++spine) {
    for (std::int64_t j = 0; j < share; ++j) {
      maker.link(node_id(first_spine + spine), node_id(first_core + spine % spines * share + j),
                 core_rate);
    }
  }
  built.topology = maker.finish(static_cast<std::int32_t>(servers.gpus_per_server));
  return built;
}

}  // namespace

extern const TopologyBuilder kPodsTopologyBuilder;
const TopologyBuilder kPodsTopologyBuilder{"pods", "super-spine multi-pod",
                                           "several pods of leaves and spines under core switches",
                                           kFlags, build};

}  // namespace lockstep
