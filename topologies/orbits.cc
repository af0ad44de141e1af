#include "topologies/orbits.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/sets.h"
#include "topologies/fold.h"

namespace lockstep {
namespace {

/// A neighbour, to match lists of them.
struct End {
  std::int32_t node, link_class, port;
  friend auto operator<=>(const End&, const End&) = default;
};

class Finder {
 public:
  Finder(const Topology& topology, std::span<const std::uint64_t> colour, bool common_turn)
      : topology_(topology),
        colour_(colour),
        common_turn_(common_turn),
        adjacency_(topology),
        image_(topology.nodes.size()),
        taken_(topology.nodes.size()),
        nodes_(topology.nodes.size()),
        ports_(2 * topology.links.size()) {
    for (const Node& node : topology.nodes) {
      if (node.server >= 0) {
        server_size_.resize(
            std::max(server_size_.size(), static_cast<std::size_t>(node.server) + 1));
        ++server_size_[static_cast<std::size_t>(node.server)];
      }
    }
  }

  Orbits run() {
    join_parallel_links();
    const TopologyPart root = fold(topology_);
    turn_servers(root);
    turn_children(root);
    turn_twins();
    Orbits orbits;
    orbits.node = nodes_.numbers();
    orbits.port = ports_.numbers();
    for (const std::int32_t orbit : orbits.port) {
      orbits.port_size.resize(
          std::max(orbits.port_size.size(), static_cast<std::size_t>(orbit) + 1));
      ++orbits.port_size[static_cast<std::size_t>(orbit)];
    }
    orbits.generators = generators_;
    return orbits;
  }

 private:
  const Node& node(NodeId id) const { return topology_.nodes[id.index()]; }
  std::int32_t class_of(PortId port) const { return topology_.links[port.index() / 2].link_class; }

  // One permutation at a time: nodes that it says nothing about stay.
  void begin() {
    for (const auto& [from, to] : moves_) {
      image_[from.index()] = taken_[to.index()] = NodeId();
    }
    moves_.clear();
  }
  bool move(NodeId from, NodeId to) {
    if (image_[from.index()].valid() || taken_[to.index()].valid()) {
      return image_[from.index()] == to;
    }
    image_[from.index()] = to;
    taken_[to.index()] = from;
    moves_.emplace_back(from, to);
    return true;
  }
  NodeId image(NodeId id) const { return image_[id.index()].valid() ? image_[id.index()] : id; }

  /// Lets the neighbours of what moves follow, in order, and theirs.
  bool follow() {
    std::vector<std::tuple<NodeKind, std::uint8_t, End>> here, there;
    for (std::size_t i = 0; i < moves_.size(); ++i) {
      const auto [from, to] = moves_[i];
      if (from == to) {
        continue;
      }
      here.clear();
      there.clear();
      for (const Neighbour& n : adjacency_.of(from)) {
        if (!image_[n.node.index()].valid()) {
          here.emplace_back(node(n.node).kind, node(n.node).tier,
                            End{n.node.value, class_of(n.port), n.port.value});
        }
      }
      for (const Neighbour& n : adjacency_.of(to)) {
        if (!taken_[n.node.index()].valid()) {
          there.emplace_back(node(n.node).kind, node(n.node).tier,
                             End{n.node.value, class_of(n.port), n.port.value});
        }
      }
      if (here.size() != there.size()) {
        return false;
      }
      std::ranges::sort(here);
      std::ranges::sort(there);
      for (std::size_t k = 0; k < here.size(); ++k) {
        if (!move(NodeId(std::get<2>(here[k]).node), NodeId(std::get<2>(there[k]).node))) {
          return false;
        }
      }
    }
    return true;
  }

  /// Proves the permutation and takes it into the group.
  void prove() {
    if (moves_.empty() || !follow()) {
      return;
    }
    std::map<std::int32_t, std::pair<std::int32_t, std::int64_t>> servers;  // to which, how many
    std::vector<std::pair<std::int32_t, std::int32_t>> ports;
    for (const auto& [from, to] : moves_) {
      const Node& a = node(from);
      const Node& b = node(to);
      if (!image_[to.index()].valid() || a.kind != b.kind || a.tier != b.tier ||
          a.gpu_type != b.gpu_type || (a.server < 0) != (b.server < 0) ||
          colour_[from.index()] != colour_[to.index()] || !same_links(from, to, ports)) {
        return;
      }
      if (a.server >= 0) {
        auto& entry = servers.try_emplace(a.server, b.server, 0).first->second;
        ++entry.second;
        if (entry.first != b.server) {
          return;
        }
      }
    }
    for (const auto& [server, to] : servers) {
      const auto size = [&](std::int32_t s) { return server_size_[static_cast<std::size_t>(s)]; };
      if (to.first != server && (to.second != size(server) || to.second != size(to.first))) {
        return;
      }
    }
    for (const auto& [from, to] : moves_) {
      nodes_.join(from.index(), to.index());
    }
    for (const auto& [from, to] : ports) {
      ports_.join(static_cast<std::size_t>(from), static_cast<std::size_t>(to));
      ports_.join(static_cast<std::size_t>(from ^ 1), static_cast<std::size_t>(to ^ 1));
    }
    ++generators_;
  }

  /// Whether the images of a node's neighbours are the neighbours of its image; appends which port
  /// becomes which.
  bool same_links(NodeId from, NodeId to,
                  std::vector<std::pair<std::int32_t, std::int32_t>>& ports) const {
    std::vector<End> here, there;
    for (const Neighbour& n : adjacency_.of(from)) {
      here.push_back({image(n.node).value, class_of(n.port), n.port.value});
    }
    for (const Neighbour& n : adjacency_.of(to)) {
      there.push_back({n.node.value, class_of(n.port), n.port.value});
    }
    if (here.size() != there.size()) {
      return false;
    }
    std::ranges::sort(here);
    std::ranges::sort(there);
    for (std::size_t k = 0; k < here.size(); ++k) {
      if (here[k].node != there[k].node || here[k].link_class != there[k].link_class) {
        return false;
      }
      ports.emplace_back(here[k].port, there[k].port);
    }
    return true;
  }

  /// Links of one class between the same two nodes are alike.
  void join_parallel_links() {
    std::vector<End> ends;
    for (std::size_t i = 0; i < topology_.nodes.size(); ++i) {
      ends.clear();
      for (const Neighbour& n : adjacency_.of(NodeId(i))) {
        ends.push_back({n.node.value, class_of(n.port), n.port.value});
      }
      std::ranges::sort(ends);
      for (std::size_t k = 1; k < ends.size(); ++k) {
        if (ends[k].node == ends[k - 1].node && ends[k].link_class == ends[k - 1].link_class) {
          ports_.join(static_cast<std::size_t>(ends[k].port),
                      static_cast<std::size_t>(ends[k - 1].port));
        }
      }
    }
  }

  static void list_gpus(const TopologyPart& part, std::vector<NodeId>& gpus) {
    gpus.insert(gpus.end(), part.gpus.begin(), part.gpus.end());
    for (const TopologyPart& child : part.children) {
      list_gpus(child, gpus);
    }
  }

  /// In every part, from the outermost in: children that are alike turn by one.
  void turn_children(const TopologyPart& part) {
    std::map<std::pair<std::string_view, std::vector<std::uint64_t>>,
             std::vector<std::vector<NodeId>>>
        alike;
    for (const TopologyPart& child : part.children) {
      std::vector<NodeId> gpus;
      list_gpus(child, gpus);
      std::vector<std::uint64_t> colours;
      colours.reserve(gpus.size());
      for (const NodeId gpu : gpus) {
        colours.push_back(colour_[gpu.index()]);
      }
      alike[{child.shape, std::move(colours)}].push_back(std::move(gpus));
    }
    for (const auto& entry : alike) {
      const std::vector<std::vector<NodeId>>& parts = entry.second;
      begin();
      for (std::size_t p = 0; parts.size() > 1 && p < parts.size(); ++p) {
        const std::vector<NodeId>& next = parts[(p + 1) % parts.size()];
        for (std::size_t i = 0; i < next.size() && i < parts[p].size(); ++i) {
          move(parts[p][i], next[i]);
        }
      }
      prove();
    }
    for (const TopologyPart& child : part.children) {
      turn_children(child);
    }
  }

  static void list_servers(const TopologyPart& part,
                           std::vector<const std::vector<NodeId>*>& servers) {
    if (!part.gpus.empty()) {
      servers.push_back(&part.gpus);
    }
    for (const TopologyPart& child : part.children) {
      list_servers(child, servers);
    }
  }

  /// The GPUs of every server turn by one.
  void turn_servers(const TopologyPart& root) {
    std::vector<const std::vector<NodeId>*> servers;
    list_servers(root, servers);
    begin();
    for (const std::vector<NodeId>* server : servers) {
      if (common_turn_ && server->size() != servers.front()->size()) {
        return;
      }
      for (std::size_t i = 0; i < server->size(); ++i) {
        move((*server)[i], (*server)[(i + 1) % server->size()]);
      }
    }
    prove();
  }

  /// Switches and NVSwitches with the same neighbours turn by one.
  void turn_twins() {
    std::map<std::vector<std::pair<std::int32_t, std::int32_t>>, std::vector<NodeId>> alike;
    std::vector<std::pair<std::int32_t, std::int32_t>> ends;
    for (std::size_t i = 0; i < topology_.nodes.size(); ++i) {
      if (topology_.nodes[i].kind != NodeKind::kGpu) {
        ends.clear();
        for (const Neighbour& n : adjacency_.of(NodeId(i))) {
          ends.emplace_back(n.node.value, class_of(n.port));
        }
        std::ranges::sort(ends);
        alike[ends].emplace_back(i);
      }
    }
    for (const auto& entry : alike) {
      const std::vector<NodeId>& twins = entry.second;
      begin();
      for (std::size_t i = 0; twins.size() > 1 && i < twins.size(); ++i) {
        move(twins[i], twins[(i + 1) % twins.size()]);
      }
      prove();
    }
  }

  const Topology& topology_;
  std::span<const std::uint64_t> colour_;
  bool common_turn_;
  Adjacency adjacency_;
  std::vector<std::int64_t> server_size_;
  std::vector<NodeId> image_, taken_;  // of the permutation at hand; invalid: nothing said
  std::vector<std::pair<NodeId, NodeId>> moves_;
  Sets nodes_, ports_;
  std::int32_t generators_ = 0;
};

}  // namespace

Orbits find_orbits(const Topology& topology, std::span<const std::uint64_t> colour,
                   bool common_turn) {
  return Finder(topology, colour, common_turn).run();
}

}  // namespace lockstep
