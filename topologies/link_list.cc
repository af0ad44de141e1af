#include "topologies/link_list.h"

#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"

namespace lockstep {
namespace {

/// Calls f(index) for the links asked for.
template <class F>
void each_link(const Topology& topology, std::optional<std::int64_t> node, F f) {
  if (node && (*node < 0 || *node >= std::ssize(topology.nodes))) {
    throw Error(
        fmt::format("there is no node {}; there are {}, from 0", *node, topology.nodes.size()))
        .field("--of");
  }
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    const Link& link = topology.links[i];
    if (!node || link.a.value == *node || link.b.value == *node) {
      f(i);
    }
  }
}

/// "3 GPU 3 of server 0": the node's number, and what it is. GPUs are counted from 0.
std::vector<std::string> node_names(const Topology& topology) {
  std::vector<std::string> names;
  std::int32_t rank = 0;
  for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
    const Node& node = topology.nodes[i];
    switch (node.kind) {
      case NodeKind::kGpu:
        names.push_back(fmt::format("{} GPU {} of server {}", i, rank++, node.server));
        break;
      case NodeKind::kNvSwitch:
        names.push_back(fmt::format("{} NVSwitch of server {}", i, node.server));
        break;
      case NodeKind::kSwitch:
        names.push_back(fmt::format("{} switch, tier {}", i, node.tier));
        break;
    }
  }
  return names;
}

}  // namespace

std::string links_text(const Topology& topology, std::optional<std::int64_t> node) {
  const std::vector<std::string> names = node_names(topology);
  std::string text = fmt::format("{:<8}{:<28}{:<28}{:<14}{}\n", "link", "from node", "to node",
                                 "each way", "delay");
  each_link(topology, node, [&](std::size_t i) {
    const Link& link = topology.links[i];
    const LinkClass& kind = topology.class_of(LinkId(static_cast<std::int32_t>(i)));
    text += fmt::format("{:<8}{:<28}{:<28}{:<14}{}\n", i, names[link.a.index()],
                        names[link.b.index()], to_text(kind.rate), to_text(kind.delay));
  });
  return text;
}

std::string links_json(const Topology& topology, std::optional<std::int64_t> node) {
  const std::vector<std::string> names = node_names(topology);
  Json links = Json::array();
  each_link(topology, node, [&](std::size_t i) {
    const Link& link = topology.links[i];
    const LinkClass& kind = topology.class_of(LinkId(static_cast<std::int32_t>(i)));
    links.push_back({{"link", i},
                     {"from", link.a.value},
                     {"from_name", names[link.a.index()]},
                     {"to", link.b.value},
                     {"to_name", names[link.b.index()]},
                     {"rate_Bps", kind.rate.bytes_per_second()},
                     {"delay_s", kind.delay.seconds()}});
  });
  return to_text(Json{{"schema", "lockstep-topology-links/1"},
                      {"topology", topology.name},
                      {"links", std::move(links)}});
}

}  // namespace lockstep
