#include <fmt/format.h>

#include "base/error.h"
#include "topologies/servers.h"

namespace lockstep {
namespace {

using enum FlagKind;

constexpr auto kFlags =
    std::array<BuilderFlag, 7>{{
        {"gpus-per-router p", kCount, "8", "GPUs on each router (p)", 1, 4096},
        {"routers-per-group a", kCount, "4", "routers in a group (a), all linked to each other", 1,
         1024},
        {"global-links gl", kCount, "2", "links of a router to other groups (h)", 1, 1024},
        {"groups", kCount, "0", "groups; 0 for the most, a * h + 1", 0, 1 << 20},
        {"local-rate ap_bandwidth apbw", kRate, "400Gbps", "rate inside a group", 0, 0},
        {"global-rate", kRate, "400Gbps", "rate between groups", 0, 0},
        {"global-delay", kDelay, "0.0005ms", "delay between groups", 0, 0},
    }} +
    server_flags();

/// A dragonfly (Kim, Dally, Scott, Abts: Technology-Driven, Highly-Scalable Dragonfly Topology,
/// ISCA 2008) of g groups of a routers, with consecutive global links: every two groups are joined
/// by floor(a * h / (g - 1)) links; port q of a group sits on its router q / h and leads, for
/// q = t * (g - 1) + r, to the r-th other group.
///
/// Nodes: G = g * a * p GPUs, their NVSwitches, g * a routers. Links: G * nsps + G, then
/// g * a * (a - 1) / 2 local and g * (g - 1) / 2 * floor(a * h / (g - 1)) global ones.
BuiltTopology build(const FlagValues& flags) {
  const std::int64_t p = flags.count("gpus-per-router");
  const std::int64_t a = flags.count("routers-per-group");
  const std::int64_t h = flags.count("global-links");
  const std::int64_t groups = flags.count("groups") == 0 ? a * h + 1 : flags.count("groups");
  if (groups > a * h + 1) {
    throw Error(fmt::format("{} groups cannot all be linked", groups))
        .field("flag groups")
        .expected(fmt::format("at most a * h + 1 = {}", a * h + 1));
  }
  const Servers servers = servers_from(flags, groups * a * p);
  const std::int64_t between = groups == 1 ? 0 : a * h / (groups - 1);
  BuiltTopology built;
  built.file_name = file_name(fmt::format("dragonfly_p{}a{}h{}", p, a, h), servers);
  TopologyMaker maker(built.file_name);
  maker.reserve(servers.gpus + servers.nvswitches() + groups * a,
                servers.links() + groups * a * (a - 1) / 2 + groups * (groups - 1) / 2 * between);
  add_servers(maker, servers);
  const std::int64_t first = add_switches(maker, groups * a);
  link_servers(maker, servers, [&](std::int64_t gpu) { return node_id(first + gpu / p); });
  const std::int32_t local =
      maker.link_class(flags.text("local-rate"), servers.delay, servers.error_rate);
  for (std::int64_t group = 0; group < groups; ++group) {
    for (std::int64_t i = 0; i < a; ++i) {
      for (std::int64_t j = i + 1; j < a; ++j) {
        maker.link(node_id(first + group * a + i), node_id(first + group * a + j), local);
      }
    }
  }
  const std::int32_t global =
      maker.link_class(flags.text("global-rate"), flags.text("global-delay"), servers.error_rate);
  const auto router = [&](std::int64_t group, std::int64_t other, std::int64_t t) {
    const std::int64_t rank = other < group ? other : other - 1;
    return node_id(first + group * a + (t * (groups - 1) + rank) / h);
  };
  for (std::int64_t i = 0; i < groups; ++i) {
    for (std::int64_t j = i + 1; j < groups; ++j) {
      for (std::int64_t t = 0; t < between; ++t) {
        maker.link(router(i, j, t), router(j, i, t), global);
      }
    }
  }
  built.topology = maker.finish(static_cast<std::int32_t>(servers.gpus_per_server));
  return built;
}

}  // namespace

extern const TopologyBuilder kDragonflyTopologyBuilder;
const TopologyBuilder kDragonflyTopologyBuilder{
    "dragonfly", "", "groups of routers, fully linked inside, every two groups joined", kFlags,
    build};

}  // namespace lockstep
