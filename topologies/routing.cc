#include "topologies/routing.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <span>
#include <string>

#include "base/error.h"
#include "topologies/ecmp_hash.h"
#include "topologies/forwarding_plane.h"

namespace lockstep {
namespace {

PortId reversed(PortId port) { return PortId(port.value ^ 1); }

std::string described(const Topology& topology, NodeId node) {
  constexpr std::array<const char*, 3> kKinds{"GPU", "NVSwitch", "switch"};
  const Node& n = topology.nodes[node.index()];
  std::string text = kKinds[static_cast<std::size_t>(n.kind)];
  text += " node " + std::to_string(node.value);
  return n.server < 0 ? text : text + " (server " + std::to_string(n.server) + ")";
}

/// The GPUs of each server and their rails, for PXN. GPUs on the same leaves are on one rail; of
/// servers that share no leaves (in different segments) those are whose leaves are the how-manieth
/// of their server alike.
class Rails {
 public:
  Rails(const Topology& topology, const ForwardingPlane& fabric)
      : gpus_(topology.gpus()), place_(topology.nodes.size()) {
    const auto server = [&](NodeId gpu) { return topology.nodes[gpu.index()].server; };
    std::stable_sort(gpus_.begin(), gpus_.end(),
                     [&](NodeId a, NodeId b) { return server(a) < server(b); });
    std::vector<std::int32_t> leaves;  // the server's distinct sets of leaves so far
    for (std::size_t i = 0, first = 0; i < gpus_.size(); ++i) {
      if (server(gpus_[i]) != server(gpus_[first])) {
        first = i;
        leaves.clear();
      }
      auto rail = std::find(leaves.begin(), leaves.end(), fabric.target(gpus_[i]));
      if (rail == leaves.end()) {
        rail = leaves.insert(leaves.end(), fabric.target(gpus_[i]));
      }
      place_[gpus_[i].index()] = {first, i - first, rail - leaves.begin(), fabric.target(gpus_[i])};
    }
  }

  bool same(NodeId a, NodeId b) const {
    if (at(a).leaves == at(b).leaves) {
      return true;
    }
    return at(a).rail == at(b).rail && !has(a, at(b).leaves) && !has(b, at(a).leaves);
  }
  /// The GPU of `source`'s server on the rail of `destination`; invalid if there is none.
  NodeId relay(NodeId source, NodeId destination) const {
    const auto on_rail = [&](std::size_t i) {
      return i < gpus_.size() && at(gpus_[i]).first == at(source).first &&
             same(gpus_[i], destination);
    };
    const std::size_t opposite = at(source).first + at(destination).index;
    if (on_rail(opposite)) {
      return gpus_[opposite];
    }
    for (std::size_t i = at(source).first;
         i < gpus_.size() && at(gpus_[i]).first == at(source).first; ++i) {
      if (on_rail(i)) {
        return gpus_[i];
      }
    }
    return NodeId();
  }

 private:
  struct Place {
    std::size_t first = 0;  // GPU of the server, in gpus_
    std::size_t index = 0;  // in the server
    std::ptrdiff_t rail = 0;
    std::int32_t leaves = 0;
  };
  /// Whether a GPU of this one's server hangs on those leaves.
  bool has(NodeId of, std::int32_t leaves) const {
    for (std::size_t i = at(of).first; i < gpus_.size() && at(gpus_[i]).first == at(of).first;
         ++i) {
      if (at(gpus_[i]).leaves == leaves) {
        return true;
      }
    }
    return false;
  }
  const Place& at(NodeId gpu) const { return place_[gpu.index()]; }

  std::vector<NodeId> gpus_;  // by server, then by id
  std::vector<Place> place_;
};

/// ECMP's choices for one flow.
class Picker {
 public:
  explicit Picker(const FlowKey& key)
      : source_(node_address(key.source)),
        destination_(node_address(key.destination)),
        ports_(key.source_port | std::uint32_t{key.destination_port} << 16) {}

  /// Which of `count` ports a flow takes at its source.
  std::size_t at_source(std::size_t count) { return at(kHostHashSeed, count); }
  std::size_t at_forwarder(NodeId node, std::size_t count) {
    return at(static_cast<std::uint32_t>(node.value), count);
  }
  /// Whether ports decided anything so far.
  bool by_port() const { return by_port_; }

 private:
  std::size_t at(std::uint32_t seed, std::size_t count) {
    if (count == 1) {
      return 0;
    }
    by_port_ = true;
    return murmur3_x86_32(source_, destination_, ports_, seed) % count;
  }
  std::uint32_t source_, destination_, ports_;
  bool by_port_ = false;
};

/// Which of `count` ports of a GPU a channel takes with rail affinity, where its server has `gpus`.
std::size_t port_of_channel(std::int32_t channel, std::int32_t gpus, std::size_t count) {
  if (count == 1) {
    return 0;
  }
  const std::int32_t odd = gpus >> std::countr_zero(static_cast<std::uint32_t>(gpus));
  auto sum = static_cast<std::size_t>(channel % odd);
  for (auto rest = static_cast<std::size_t>(channel / odd); rest > 0; rest /= count) {
    sum += rest % count;
  }
  return sum % count;
}

}  // namespace

struct Router::State {
  State(const Topology& t, RouteOptions o)
      : topology(t),
        options(o),
        adjacency(t),
        nvlink(t, adjacency, NodeKind::kNvSwitch),
        fabric(t, adjacency, NodeKind::kSwitch),
        rails(t, fabric),
        amount(static_cast<std::size_t>(std::max(nvlink.size(), fabric.size()))) {
    for (const Node& node : t.nodes) {
      if (node.kind == NodeKind::kGpu && node.server >= 0) {
        const auto server = static_cast<std::size_t>(node.server);
        gpus_of_server.resize(std::max(gpus_of_server.size(), server + 1));
        ++gpus_of_server[server];
      }
    }
  }

  bool same_server(NodeId a, NodeId b) const {
    const std::int32_t server = topology.nodes[a.index()].server;
    return server >= 0 && server == topology.nodes[b.index()].server;
  }
  bool has_link(NodeId a, NodeId b) const {
    const std::span<const Neighbour> all = adjacency.of(a);
    const auto found = std::ranges::lower_bound(all, b, {}, &Neighbour::node);
    return found != all.end() && found->node == b;
  }
  /// Whether what a plane carries is spread over all shortest ways.
  bool spreads(const ForwardingPlane& plane) const {
    return options.spray || (&plane == &nvlink && !options.hash_nvlinks);
  }
  /// Whether the source picks its port by channel.
  bool by_channel(const ForwardingPlane& plane, NodeId source) const {
    return options.rail_affinity && &plane == &fabric &&
           topology.nodes[source.index()].kind == NodeKind::kGpu;
  }
  std::size_t port_by_channel(const FlowKey& key, std::size_t count) const {
    const std::int32_t server = topology.nodes[key.source.index()].server;
    return port_of_channel(
        key.channel, server < 0 ? 1 : gpus_of_server[static_cast<std::size_t>(server)], count);
  }
  bool direct(const FlowKey& key, Route& route);
  bool find_exits(ForwardingPlane& plane, const FlowKey& key);
  bool over(ForwardingPlane& plane, const FlowKey& key, Route& route);
  void walk(ForwardingPlane& plane, const FlowKey& key, Route& route);
  void spray(ForwardingPlane& plane, const FlowKey& key, Route& route);
  bool within_server(const FlowKey& key, Route& route) {
    return direct(key, route) ||
           (same_server(key.source, key.destination) && over(nvlink, key, route));
  }
  bool relayed(const FlowKey& key, Route& route);
  void add_even(std::span<const NextHop> next, double share, Route& route);

  const Topology& topology;
  RouteOptions options;
  Adjacency adjacency;
  ForwardingPlane nvlink, fabric;
  Rails rails;
  std::vector<std::int32_t> gpus_of_server;
  // Scratch, kept so that a route allocates nothing.
  std::vector<NextHop> exits;              // the source's ports that lie on shortest paths
  std::vector<NextHop> entries;            // the last forwarder's ports to the destination
  std::vector<double> amount;              // sprayed: share of the flow at each forwarder
  std::vector<std::int32_t> wave, coming;  // sprayed: forwarders at one distance, and the next
};

/// Takes one of the links between the two nodes, if there are any (spread: all of them).
bool Router::State::direct(const FlowKey& key, Route& route) {
  const std::span<const Neighbour> all = adjacency.of(key.source);
  const auto [first, last] =
      std::equal_range(all.begin(), all.end(), Neighbour{key.destination, PortId()},
                       [](const Neighbour& a, const Neighbour& b) { return a.node < b.node; });
  const auto count = static_cast<std::size_t>(last - first);
  if (count == 0) {
    return false;
  }
  const auto is_switch = [&](NodeId node) {
    return topology.nodes[node.index()].kind == NodeKind::kSwitch;
  };
  const ForwardingPlane& plane =
      is_switch(key.source) || is_switch(key.destination) ? fabric : nvlink;
  if (spreads(plane)) {
    for (auto i = first; i != last; ++i) {
      route.hops.push_back({i->port, 1.0 / static_cast<double>(count)});
    }
  } else {
    Picker picker(key);
    const std::size_t pick =
        by_channel(plane, key.source) ? port_by_channel(key, count) : picker.at_source(count);
    route.hops.push_back({all[static_cast<std::size_t>(first - all.begin()) + pick].port});
    route.by_port |= picker.by_port();
  }
  return true;
}

/// Sets `exits`; false if no port of the source leads to the destination over this plane.
bool Router::State::find_exits(ForwardingPlane& plane, const FlowKey& key) {
  exits.clear();
  const std::int32_t target = plane.target(key.destination);
  if (target < 0) {
    return false;
  }
  const std::int32_t self = plane.forwarder(key.source);
  if (self >= 0) {
    exits.push_back({self, PortId()});
    return plane.distance(target, self) != ForwardingPlane::kUnreachable;
  }
  std::uint16_t nearest = ForwardingPlane::kUnreachable;
  for (const NextHop& uplink : plane.uplinks(key.source)) {
    const std::uint16_t distance = plane.distance(target, uplink.forwarder);
    if (distance < nearest) {
      nearest = distance;
      exits.clear();
    }
    if (distance == nearest && distance != ForwardingPlane::kUnreachable) {
      exits.push_back(uplink);
    }
  }
  return !exits.empty();
}

bool Router::State::over(ForwardingPlane& plane, const FlowKey& key, Route& route) {
  plane.trim(options.table_budget);
  if (!find_exits(plane, key)) {
    return false;
  }
  if (spreads(plane)) {
    spray(plane, key, route);
  } else {
    walk(plane, key, route);
  }
  return true;
}

void Router::State::walk(ForwardingPlane& plane, const FlowKey& key, Route& route) {
  Picker picker(key);
  const std::int32_t target = plane.target(key.destination);
  NextHop hop = exits[by_channel(plane, key.source) ? port_by_channel(key, exits.size())
                                                    : picker.at_source(exits.size())];
  if (hop.port.valid()) {
    route.hops.push_back({hop.port});
  }
  while (plane.distance(target, hop.forwarder) > 0) {
    const std::span<const NextHop> next = plane.next_hops(target, hop.forwarder);
    hop = next[picker.at_forwarder(plane.node(hop.forwarder), next.size())];
    route.hops.push_back({hop.port});
  }
  if (plane.node(hop.forwarder) != key.destination) {
    entries.clear();
    for (const NextHop& uplink : plane.uplinks(key.destination)) {
      if (uplink.forwarder == hop.forwarder) {
        entries.push_back(uplink);
      }
    }
    const std::size_t pick = picker.at_forwarder(plane.node(hop.forwarder), entries.size());
    route.hops.push_back({reversed(entries[pick].port)});
  }
  route.by_port |= picker.by_port();
}

/// Appends equal parts of `share` on each of `next` and carries them to their forwarders.
void Router::State::add_even(std::span<const NextHop> next, double share, Route& route) {
  const double part = share / static_cast<double>(next.size());
  for (const NextHop& hop : next) {
    if (hop.port.valid()) {
      route.hops.push_back({hop.port, part});
    }
    double& there = amount[static_cast<std::size_t>(hop.forwarder)];
    if (there == 0) {
      coming.push_back(hop.forwarder);
    }
    there += part;
  }
}

/// Every forwarder of a wave has the same distance to the target, so each is passed once.
void Router::State::spray(ForwardingPlane& plane, const FlowKey& key, Route& route) {
  const std::int32_t target = plane.target(key.destination);
  const auto take = [&](std::int32_t forwarder) {
    return std::exchange(amount[static_cast<std::size_t>(forwarder)], 0.0);
  };
  if (by_channel(plane, key.source)) {
    exits = {exits[port_by_channel(key, exits.size())]};
  }
  coming.clear();
  add_even(exits, 1.0, route);
  while (plane.distance(target, coming.front()) > 0) {
    std::swap(wave, coming);
    coming.clear();
    for (const std::int32_t forwarder : wave) {
      add_even(plane.next_hops(target, forwarder), take(forwarder), route);
    }
  }
  for (const std::int32_t forwarder : coming) {
    const double share = take(forwarder);
    if (plane.node(forwarder) == key.destination) {
      continue;
    }
    entries.clear();
    for (const NextHop& uplink : plane.uplinks(key.destination)) {
      if (uplink.forwarder == forwarder) {
        entries.push_back(uplink);
      }
    }
    for (const NextHop& entry : entries) {
      route.hops.push_back({reversed(entry.port), share / static_cast<double>(entries.size())});
    }
  }
}

/// PXN: over NVLink to the GPU on the destination's rail, then on from there.
bool Router::State::relayed(const FlowKey& key, Route& route) {
  const auto is_gpu = [&](NodeId node) {
    return topology.nodes[node.index()].kind == NodeKind::kGpu;
  };
  if (!options.pxn || !is_gpu(key.source) || !is_gpu(key.destination) ||
      same_server(key.source, key.destination) || rails.same(key.source, key.destination)) {
    return false;
  }
  const NodeId relay = rails.relay(key.source, key.destination);
  if (!relay.valid()) {
    return false;
  }
  FlowKey first = key, second = key;
  first.destination = second.source = relay;
  if (within_server(first, route) && over(fabric, second, route)) {
    return true;
  }
  route.hops.clear();
  route.by_port = false;
  return false;
}

Router::Router(const Topology& topology, RouteOptions options)
    : state_(std::make_unique<State>(topology, options)) {}
Router::~Router() = default;
Router::Router(Router&&) noexcept = default;
Router& Router::operator=(Router&&) noexcept = default;

void Router::route(const FlowKey& key, Route& route) {
  LOCKSTEP_CHECK(key.source != key.destination, "a flow from a node to itself has no route");
  route.hops.clear();
  route.by_port = false;
  if (state_->within_server(key, route) || state_->relayed(key, route) ||
      state_->over(state_->fabric, key, route)) {
    return;
  }
  const Topology& topology = state_->topology;
  throw Error("no path from " + described(topology, key.source) + " to " +
              described(topology, key.destination))
      .expected("a chain of links over NVSwitches of one server, or over switches");
}

std::optional<Router::FabricEnds> Router::fabric_ends(NodeId source, NodeId destination) const {
  State& state = *state_;
  if (!state.options.spray || state.same_server(source, destination) ||
      state.has_link(source, destination) ||
      (state.options.pxn && !state.rails.same(source, destination))) {
    return std::nullopt;
  }
  for (const NodeId end : {source, destination}) {
    if (state.topology.nodes[end.index()].kind != NodeKind::kGpu ||
        state.fabric.uplinks(end).size() != 1) {
      return std::nullopt;
    }
  }
  const NextHop exit = state.fabric.uplinks(source).front();
  const NextHop entry = state.fabric.uplinks(destination).front();
  return FabricEnds{exit.port, reversed(entry.port), exit.forwarder, entry.forwarder};
}

const Topology& Router::topology() const { return state_->topology; }

std::size_t Router::table_bytes() const {
  return state_->nvlink.table_bytes() + state_->fabric.table_bytes();
}

}  // namespace lockstep
