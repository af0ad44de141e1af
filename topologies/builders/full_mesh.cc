#include <algorithm>

#include <fmt/format.h>

#include "topologies/servers.h"

namespace lockstep {
namespace {

using enum FlagKind;

constexpr std::array<BuilderFlag, 5> kFlags{{
    {"gpus gpu g", kCount, "8", "GPUs, all in one NVLink domain", 1, 8192},
    {"gpu-type gt", kWord, "H100", "GPU type", 0, 0},
    {"nvlink nvlink_bw nvbw rate", kRate, "400Gbps", "rate of each link", 0, 0},
    {"nvlink-delay nv_latency nl delay", kDelay, "0.000025ms", "delay of each link", 0, 0},
    {"error-rate er", kProbability, "0", "loss probability of a packet", 0, 0},
}};

/// Nodes: G GPUs. Links: G * (G - 1) / 2, in order of the lower, then the higher GPU.
BuiltTopology build(const FlagValues& flags) {
  const std::int64_t gpus = flags.count("gpus");
  BuiltTopology built;
  built.file_name =
      fmt::format("full-mesh_{}g_{}_{}", gpus, flags.text("nvlink"), flags.text("gpu-type"));
  std::replace(built.file_name.begin(), built.file_name.end(), '/', '_');
  TopologyMaker maker(built.file_name);
  maker.reserve(gpus, gpus * (gpus - 1) / 2);
  const std::int16_t type = maker.gpu_type(flags.text("gpu-type"));
  for (std::int64_t i = 0; i < gpus; ++i) {
    maker.add_gpu(0, type);
  }
  const std::int32_t rate =
      maker.link_class(flags.text("nvlink"), flags.text("nvlink-delay"), flags.text("error-rate"));
  for (std::int64_t i = 0; i < gpus; ++i) {
    for (std::int64_t j = i + 1; j < gpus; ++j) {
      maker.link(node_id(i), node_id(j), rate);
    }
  }
  built.topology = maker.finish(static_cast<std::int32_t>(gpus));
  return built;
}

}  // namespace

extern const TopologyBuilder kFullMeshTopologyBuilder;
const TopologyBuilder kFullMeshTopologyBuilder{
    "full-mesh", "mesh", "a link between every two GPUs, no switch (one NVLink domain)", kFlags,
    build};

}  // namespace lockstep
