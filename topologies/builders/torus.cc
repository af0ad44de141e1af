#include <fmt/format.h>

#include "base/error.h"
#include "topologies/servers.h"

namespace lockstep {
namespace {

using enum FlagKind;

constexpr std::int64_t kMostDimensions = 6;

constexpr auto kFlags =
    std::array<BuilderFlag, 3>{{
        {"shape s", kShape, "4x4x4", "routers along each dimension, such as 8x8 or 4x4x4", 1, 4096},
        {"gpus-per-router gpr", kCount, "8", "GPUs on each router", 1, 4096},
        {"uplink ap_bandwidth apbw", kRate, "400Gbps", "rate between neighbouring routers", 0, 0},
    }} +
    server_flags();

/// A torus of routers, each with GPUs: GPU i hangs on router i / gpus-per-router, and router
/// x + X * (y + Y * z) sits at (x, y, z). Traffic passes routers, never GPUs.
///
/// With R routers, a dimension of size s has R links if s > 2, R / 2 if s = 2 (the two ways round
/// are one link), none if s = 1.
BuiltTopology build(const FlagValues& flags) {
  const std::vector<std::int64_t> shape = flags.shape("shape");
  if (static_cast<std::int64_t>(shape.size()) > kMostDimensions) {
    throw Error(fmt::format("a torus of {} dimensions", shape.size()))
        .field("flag shape")
        .expected(fmt::format("at most {}", kMostDimensions));
  }
  constexpr std::int64_t kMostRouters = 1 << 20;
  std::int64_t routers = 1;
  for (const std::int64_t size : shape) {
    routers *= size;
    if (routers > kMostRouters) {
      throw Error(fmt::format("the shape {} has too many routers", flags.text("shape")))
          .field("flag shape")
          .expected(fmt::format("at most {}", kMostRouters));
    }
  }
  std::int64_t mesh_links = 0;
  for (const std::int64_t size : shape) {
    mesh_links += size > 2 ? routers : size == 2 ? routers / 2 : 0;
  }
  const std::int64_t on_router = flags.count("gpus-per-router");
  const Servers servers = servers_from(flags, routers * on_router);
  BuiltTopology built;
  built.file_name = file_name("torus_" + flags.text("shape"), servers);
  TopologyMaker maker(built.file_name);
  maker.reserve(servers.gpus + servers.nvswitches() + routers, servers.links() + mesh_links);
  add_servers(maker, servers);
  const std::int64_t first = add_switches(maker, routers);
  link_servers(maker, servers, [&](std::int64_t gpu) { return node_id(first + gpu / on_router); });
  const std::int32_t rate =
      maker.link_class(flags.text("uplink"), servers.delay, servers.error_rate);
  std::int64_t stride = 1;
  for (const std::int64_t size : shape) {
    for (std::int64_t r = 0; r < routers; ++r) {
      const std::int64_t at = r / stride % size;
      // Each router links to its successor; of two routers only the first one does.
      if (size > 2 || at + 1 < size) {
        const std::int64_t next = at + 1 < size ? r + stride : r - at * stride;
        maker.link(node_id(first + r), node_id(first + next), rate);
      }
    }
    stride *= size;
  }
  built.topology = maker.finish(static_cast<std::int32_t>(servers.gpus_per_server));
  return built;
}

}  // namespace

extern const TopologyBuilder kTorusTopologyBuilder;
const TopologyBuilder kTorusTopologyBuilder{
    "torus", "torus2d torus3d", "a torus of routers in up to six dimensions, each with GPUs",
    kFlags, build};

}  // namespace lockstep
