#include "topologies/topology_maker.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

Node node_of(NodeKind kind, std::int32_t server, std::int16_t gpu_type) {
  Node node;
  node.kind = kind;
  node.server = server;
  node.gpu_type = gpu_type;
  return node;
}

template <class F>
auto in_field(std::string_view field, F&& read) {
  try {
    return read();
  } catch (Error& error) {
    throw std::move(error).field(field);
  }
}

}  // namespace

Bandwidth parse_link_rate(std::string_view text) {
  const Bandwidth rate = in_field("rate", [&] { return parse_bandwidth(text); });
  if (rate.bits_per_second() <= 0) {
    throw Error(
        fmt::format("'{}' is no positive rate: nothing would ever cross the link", printable(text)))
        .field("rate")
        .expected("a bandwidth such as 400Gbps");
  }
  if (rate > kMostLinkRate) {
    throw Error(fmt::format("'{}' is faster than any link", printable(text)))
        .field("rate")
        .expected("at most " + to_text(kMostLinkRate));
  }
  return rate;
}

Time parse_link_delay(std::string_view text) {
  const Time delay = in_field("delay", [&] { return parse_time(text); });
  if (delay > kMostLinkDelay) {
    throw Error(fmt::format("'{}' is longer than any link", printable(text)))
        .field("delay")
        .expected("at most " + to_text(kMostLinkDelay));
  }
  return delay;
}

double parse_error_rate(std::string_view text) {
  const std::optional<double> value = to_double(text);
  if (!value || *value < 0 || *value > 1) {
    throw Error(fmt::format("'{}' is no loss probability", printable(text)))
        .field("error_rate")
        .expected("a number from 0 to 1");
  }
  return *value;
}

std::int16_t TopologyMaker::gpu_type(std::string_view type) {
  std::vector<std::string>& types = topology_.gpu_types;
  const auto found = std::find(types.begin(), types.end(), type);
  const auto index = static_cast<std::int16_t>(found - types.begin());
  if (found == types.end()) {
    types.emplace_back(type);
  }
  return index;
}

std::int32_t TopologyMaker::link_class(std::string_view rate, std::string_view delay,
                                       std::string_view error) {
  std::vector<LinkClass>& classes = topology_.link_classes;
  Key key(rate, delay, error);
  if (const auto known = classes_.find(key); known != classes_.end()) {
    return known->second;
  }
  LinkClass made;
  made.rate = parse_link_rate(rate);
  made.delay = parse_link_delay(delay);
  made.error_rate = parse_error_rate(error);
  made.rate_text = rate;
  made.delay_text = delay;
  made.error_text = error;
  const auto index = static_cast<std::int32_t>(classes.size());
  classes.push_back(std::move(made));
  classes_.emplace(std::move(key), index);
  return index;
}

NodeId TopologyMaker::add_gpu(std::int32_t server, std::int16_t type) {
  topology_.nodes.push_back(node_of(NodeKind::kGpu, server, type));
  return NodeId(topology_.nodes.size() - 1);
}

NodeId TopologyMaker::add_nvswitch(std::int32_t server) {
  topology_.nodes.push_back(node_of(NodeKind::kNvSwitch, server, 0));
  return NodeId(topology_.nodes.size() - 1);
}

NodeId TopologyMaker::add_switch() {
  topology_.nodes.push_back(node_of(NodeKind::kSwitch, -1, 0));
  return NodeId(topology_.nodes.size() - 1);
}

void TopologyMaker::reserve(std::int64_t nodes, std::int64_t links) {
  constexpr std::int64_t kMostNodes = std::int64_t{1} << 22;
  constexpr std::int64_t kMostLinks = std::int64_t{1} << 25;
  if (nodes > kMostNodes || links > kMostLinks) {
    throw Error(fmt::format("the topology would have {} nodes and {} links", nodes, links))
        .expected(fmt::format("at most {} nodes and {} links", kMostNodes, kMostLinks));
  }
  topology_.nodes.reserve(static_cast<std::size_t>(nodes));
  topology_.links.reserve(static_cast<std::size_t>(links));
}

Topology TopologyMaker::finish(std::int32_t gpus_per_server) {
  topology_.gpus_per_server = gpus_per_server;
  assign_tiers(topology_);
  return std::move(topology_);
}

void assign_tiers(Topology& topology) {
  const Adjacency adjacency(topology);
  constexpr std::uint8_t kFarthest = 255;
  std::vector<NodeId> reached = topology.gpus();
  std::vector<std::uint8_t> distance(topology.nodes.size(), 0);
  for (std::size_t next = 0; next < reached.size(); ++next) {
    const NodeId from = reached[next];
    for (const Neighbour& to : adjacency.of(from)) {
      if (distance[to.node.index()] == 0 &&
          topology.nodes[to.node.index()].kind != NodeKind::kGpu) {
        distance[to.node.index()] =
            static_cast<std::uint8_t>(std::min<int>(distance[from.index()] + 1, kFarthest));
        reached.push_back(to.node);
      }
    }
  }
  for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
    topology.nodes[i].tier = topology.nodes[i].kind == NodeKind::kSwitch ? distance[i] : 0;
  }
}

}  // namespace lockstep
