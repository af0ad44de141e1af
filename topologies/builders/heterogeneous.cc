#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "topologies/servers.h"

namespace lockstep {
namespace {

using enum FlagKind;

constexpr std::array<BuilderFlag, 17> kFlags{{
    {"gpus-a", kCount, "64", "GPUs of the first kind", 1, 1 << 20},
    {"type-a", kWord, "H100", "GPU type of the first kind", 0, 0},
    {"gpus-per-server-a", kCount, "8", "GPUs in a server of the first kind", 1, 4096},
    {"nvlink-a", kRate, "2880Gbps", "NVLink rate of the first kind", 0, 0},
    {"nic-a", kRate, "400Gbps", "NIC rate of the first kind", 0, 0},
    {"gpus-b", kCount, "64", "GPUs of the second kind", 1, 1 << 20},
    {"type-b", kWord, "A100", "GPU type of the second kind", 0, 0},
    {"gpus-per-server-b", kCount, "8", "GPUs in a server of the second kind", 1, 4096},
    {"nvlink-b", kRate, "1920Gbps", "NVLink rate of the second kind", 0, 0},
    {"nic-b", kRate, "200Gbps", "NIC rate of the second kind", 0, 0},
    {"rail-optimised rail-optimized ro", kSwitch, "true", "one leaf switch for each rail", 0, 0},
    {"gpus-per-leaf nics_per_aswitch npa", kCount, "64", "GPU ports of a leaf switch", 1, 1 << 20},
    {"spine-switches psw_switch_num psn", kCount, "16", "spine switches", 1, 1 << 16},
    {"uplink ap_bandwidth apbw", kRate, "400Gbps", "rate from leaf to spine", 0, 0},
    {"nvlink-delay nv_latency nl", kDelay, "0.000025ms", "delay from GPU to NVSwitch", 0, 0},
    {"delay latency l", kDelay, "0.0005ms", "delay of every network link", 0, 0},
    {"error-rate er", kProbability, "0", "loss probability of a packet on every link", 0, 0},
}};

/// Servers of one kind with their own leaves, and the ids at which their parts start.
struct Kind {
  std::int64_t gpus, gpus_per_server, rails, segment, leaves;
  std::string type, nvlink, nic;
  std::int64_t first_gpu = 0, first_nvswitch = 0, first_leaf = 0;
};

Kind kind_from(const FlagValues& flags, const std::string& suffix) {
  Kind kind{};
  kind.gpus = flags.count("gpus" + suffix);
  kind.gpus_per_server = flags.count("gpus-per-server" + suffix);
  kind.type = flags.text("type" + suffix);
  kind.nvlink = flags.text("nvlink" + suffix);
  kind.nic = flags.text("nic" + suffix);
  if (kind.gpus % kind.gpus_per_server != 0) {
    throw Error(fmt::format("{} GPUs do not fill servers of {}", kind.gpus, kind.gpus_per_server))
        .field("flag gpus" + suffix)
        .expected("a multiple of gpus-per-server" + suffix);
  }
  kind.rails = flags.on("rail-optimised") ? kind.gpus_per_server : 1;
  kind.segment = kind.rails * flags.count("gpus-per-leaf");
  kind.leaves = (kind.gpus + kind.segment - 1) / kind.segment * kind.rails;
  return kind;
}

/// Two kinds of servers, each with its own leaves, under common spines.
///
/// Nodes: the GPUs of both kinds, the NVSwitches (one a server), the leaves, the spines; the first
/// kind before the second. Links: 2 for each GPU, then leaves * spines.
BuiltTopology build(const FlagValues& flags) {
  std::array<Kind, 2> kinds{kind_from(flags, "-a"), kind_from(flags, "-b")};
  const std::int64_t spines = flags.count("spine-switches");
  const std::int64_t gpus = kinds[0].gpus + kinds[1].gpus;
  const std::int64_t leaves = kinds[0].leaves + kinds[1].leaves;
  BuiltTopology built;
  built.file_name = fmt::format("heterogeneous_{}{}_{}{}", kinds[0].gpus, kinds[0].type,
                                kinds[1].gpus, kinds[1].type);
  std::replace(built.file_name.begin(), built.file_name.end(), '/', '_');
  TopologyMaker maker(built.file_name);
  maker.reserve(2 * gpus + leaves + spines, 2 * gpus + leaves * spines);
  std::int64_t server = 0;
  for (Kind& kind : kinds) {
    kind.first_gpu = static_cast<std::int64_t>(maker.node_count());
    const std::int16_t type = maker.gpu_type(kind.type);
    for (std::int64_t i = 0; i < kind.gpus; ++i) {
      maker.add_gpu(static_cast<std::int32_t>(server + i / kind.gpus_per_server), type);
    }
    server += kind.gpus / kind.gpus_per_server;
  }
  server = 0;
  for (Kind& kind : kinds) {
    kind.first_nvswitch = static_cast<std::int64_t>(maker.node_count());
    for (std::int64_t i = 0; i < kind.gpus / kind.gpus_per_server; ++i) {
      maker.add_nvswitch(static_cast<std::int32_t>(server++));
    }
  }
  for (Kind& kind : kinds) {
    kind.first_leaf = add_switches(maker, kind.leaves);
  }
  const std::int64_t first_spine = add_switches(maker, spines);
  const std::string& error = flags.text("error-rate");
  const std::string& delay = flags.text("delay");
  for (const Kind& kind : kinds) {
    const std::int32_t nvlink = maker.link_class(kind.nvlink, flags.text("nvlink-delay"), error);
    const std::int32_t nic = maker.link_class(kind.nic, delay, error);
    for (std::int64_t i = 0; i < kind.gpus; ++i) {
      const NodeId gpu = node_id(kind.first_gpu + i);
      maker.link(gpu, node_id(kind.first_nvswitch + i / kind.gpus_per_server), nvlink);
      maker.link(gpu, node_id(kind.first_leaf + i / kind.segment * kind.rails + i % kind.rails),
                 nic);
    }
  }
  const std::int32_t uplink = maker.link_class(flags.text("uplink"), delay, error);
  for (std::int64_t leaf = 0; leaf < leaves; ++leaf) {
    for (std::int64_t j = 0; j < spines; ++j) {
      maker.link(node_id(kinds[0].first_leaf + leaf), node_id(first_spine + j), uplink);
    }
  }
  built.topology = maker.finish(static_cast<std::int32_t>(kinds[0].gpus_per_server));
  return built;
}

}  // namespace

extern const TopologyBuilder kHeterogeneousTopologyBuilder;
const TopologyBuilder kHeterogeneousTopologyBuilder{
    "heterogeneous", "mixed", "two kinds of servers (GPU type, NVLink, NIC) under common spines",
    kFlags, build};

}  // namespace lockstep
