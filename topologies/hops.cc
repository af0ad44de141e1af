#include "topologies/hops.h"

#include <algorithm>
#include <map>
#include <set>

namespace lockstep {
namespace {

constexpr std::int32_t kFar = -1;

using NodeSet = std::vector<NodeId>;

/// GPUs of one server that hang on the same switches and the same NVSwitches.
struct Cell {
  std::size_t group;
  const NodeSet* nvswitches;
  std::int64_t gpus;
};

class HopCounter {
 public:
  explicit HopCounter(const Topology& topology) : topology_(topology), adjacency_(topology) {
    distance_.resize(topology.nodes.size(), kFar);
    group_of_.resize(topology.nodes.size());
    std::map<NodeSet, std::size_t> groups;
    std::map<std::pair<std::int32_t, std::pair<std::size_t, NodeSet>>, std::int64_t> cells;
    for (const NodeId gpu : topology.gpus()) {
      const auto [found, added] = groups.emplace(attached(gpu, NodeKind::kSwitch), groups.size());
      if (added) {
        leaves_.push_back(found->first);
        sizes_.push_back(0);
      }
      group_of_[gpu.index()] = found->second;
      ++sizes_[found->second];
      gpus_of_group_.resize(leaves_.size());
      if (linked_to_gpu(gpu)) {
        gpus_of_group_[found->second].push_back(gpu);
      }
      const NodeSet nvswitches = attached(gpu, NodeKind::kNvSwitch);
      const std::int32_t server = topology.nodes[gpu.index()].server;
      ++cells[{server, {found->second, nvswitches}}];
    }
    cells_of_group_.resize(leaves_.size());
    std::map<std::int32_t, std::size_t> server_index;
    for (const auto& [key, count] : cells) {
      const std::size_t server = server_index.emplace(key.first, server_index.size()).first->second;
      servers_.resize(server_index.size());
      cells_of_group_[key.second.first].emplace_back(server, servers_[server].size());
      const NodeSet& stored = *nvswitch_sets_.insert(key.second.second).first;
      servers_[server].push_back({key.second.first, &stored, count});
    }
  }

  HopCounts count(std::int64_t most_steps) {
    const std::size_t groups = leaves_.size();
    const std::int64_t stride = std::max<std::int64_t>(1, steps() / most_steps);
    std::int64_t counted = 0, all = 0;
    for (std::size_t g = 0; g < groups; ++g) {
      all += sizes_[g];
      if (static_cast<std::int64_t>(g) % stride == 0) {
        counted += sizes_[g];
        count_from(g);
      }
    }
    HopCounts result;
    result.sampled = stride > 1;
    // Each pair was met from both ends.
    const double scale = 0.5 * static_cast<double>(all) / static_cast<double>(counted);
    double total = 0, weighted = 0;
    for (std::size_t h = 0; h < pairs_.size(); ++h) {
      const double pairs = static_cast<double>(pairs_[h]) * scale;
      result.pairs.push_back(pairs);
      total += pairs;
      weighted += pairs * static_cast<double>(h);
      if (pairs_[h] > 0) {
        result.diameter = static_cast<std::int32_t>(h);
      }
    }
    result.pairs.resize(static_cast<std::size_t>(result.diameter) + 1);
    result.mean = total > 0 ? weighted / total : 0;
    return result;
  }

 private:
  bool is_gpu(NodeId id) const { return topology_.nodes[id.index()].kind == NodeKind::kGpu; }

  bool linked_to_gpu(NodeId gpu) const {
    const auto neighbours = adjacency_.of(gpu);
    return std::any_of(neighbours.begin(), neighbours.end(),
                       [&](const Neighbour& n) { return is_gpu(n.node); });
  }

  /// The nodes of a kind that a GPU may use: any switch, but only its own server's NVSwitches.
  NodeSet attached(NodeId gpu, NodeKind kind) const {
    NodeSet nodes;
    for (const Neighbour& n : adjacency_.of(gpu)) {
      const Node& node = topology_.nodes[n.node.index()];
      const bool usable =
          kind == NodeKind::kSwitch || node.server == topology_.nodes[gpu.index()].server;
      if (node.kind == kind && usable && (nodes.empty() || nodes.back() != n.node)) {
        nodes.push_back(n.node);
      }
    }
    return nodes;
  }

  std::int64_t steps() const {
    std::int64_t attachments = 0, cells = 0;
    for (const NodeSet& leaves : leaves_) {
      attachments += static_cast<std::int64_t>(leaves.size()) + 1;
    }
    for (const std::vector<Cell>& server : servers_) {
      cells += static_cast<std::int64_t>(server.size() * server.size());
    }
    const std::int64_t one_search =
        static_cast<std::int64_t>(topology_.links.size() + topology_.nodes.size());
    return static_cast<std::int64_t>(leaves_.size()) * (one_search + attachments) + cells;
  }

  /// Links from a GPU on `from` to each switch, into distance_.
  void search(const NodeSet& from, NodeKind kind, std::int32_t server) {
    for (const NodeId id : reached_) {
      distance_[id.index()] = kFar;
    }
    reached_ = from;
    for (const NodeId id : from) {
      distance_[id.index()] = 1;
    }
    for (std::size_t next = 0; next < reached_.size(); ++next) {
      const NodeId at = reached_[next];
      for (const Neighbour& n : adjacency_.of(at)) {
        const Node& node = topology_.nodes[n.node.index()];
        if (node.kind == kind && node.server == server && distance_[n.node.index()] == kFar) {
          distance_[n.node.index()] = distance_[at.index()] + 1;
          reached_.push_back(n.node);
        }
      }
    }
  }

  std::int32_t nearest(const NodeSet& to) const {
    std::int32_t best = kFar;
    for (const NodeId id : to) {
      const std::int32_t d = distance_[id.index()];
      if (d != kFar && (best == kFar || d + 1 < best)) {
        best = d + 1;
      }
    }
    return best;
  }

  std::int32_t nvlink_hops(const Cell& a, const Cell& b) {
    if (a.nvswitches->empty() || b.nvswitches->empty()) {
      return kFar;
    }
    if (a.nvswitches == b.nvswitches) {
      return 2;
    }
    search(*a.nvswitches, NodeKind::kNvSwitch,
           topology_.nodes[a.nvswitches->front().index()].server);
    return nearest(*b.nvswitches);
  }

  /// Ordered pairs; `hops` may be kFar, which a later correction takes away.
  void add(std::int32_t hops, std::int64_t pairs) {
    if (hops == kFar) {
      return;
    }
    if (static_cast<std::size_t>(hops) >= pairs_.size()) {
      pairs_.resize(static_cast<std::size_t>(hops) + 1);
    }
    pairs_[static_cast<std::size_t>(hops)] += pairs;
  }

  void count_from(std::size_t group) {
    search(leaves_[group], NodeKind::kSwitch, -1);
    std::vector<std::int32_t> over_switches(leaves_.size());
    for (std::size_t other = 0; other < leaves_.size(); ++other) {
      over_switches[other] = nearest(leaves_[other]);
      add(over_switches[other], sizes_[group] * (sizes_[other] - (other == group ? 1 : 0)));
    }
    for (const auto& [server, position] : cells_of_group_[group]) {
      const Cell& a = servers_[server][position];
      for (const Cell& b : servers_[server]) {
        const std::int64_t pairs = a.gpus * (b.gpus - (&a == &b ? 1 : 0));
        const std::int32_t nvlink = nvlink_hops(a, b);
        if (nvlink != kFar) {
          add(over_switches[b.group], -pairs);
          add(nvlink, pairs);
        }
      }
    }
    correct_direct_links(group, over_switches);
  }

  void correct_direct_links(std::size_t group, const std::vector<std::int32_t>& over_switches) {
    for (const NodeId from : gpus_of_group_[group]) {
      const std::int32_t server = topology_.nodes[from.index()].server;
      search(attached(from, NodeKind::kNvSwitch), NodeKind::kNvSwitch, server);
      NodeId last;
      for (const Neighbour& n : adjacency_.of(from)) {
        if (!is_gpu(n.node) || n.node == last) {
          continue;
        }
        last = n.node;  // parallel links stand together
        const std::int32_t nvlink = server == topology_.nodes[n.node.index()].server
                                        ? nearest(attached(n.node, NodeKind::kNvSwitch))
                                        : kFar;
        add(nvlink == kFar ? over_switches[group_of_[n.node.index()]] : nvlink, -1);
        add(1, 1);
      }
    }
  }

  const Topology& topology_;
  Adjacency adjacency_;
  std::vector<NodeSet> leaves_;        // by group: the switches its GPUs hang on
  std::vector<std::int64_t> sizes_;    // by group: GPUs
  std::vector<std::size_t> group_of_;  // by node
  std::set<NodeSet> nvswitch_sets_;
  std::vector<std::vector<Cell>> servers_;
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> cells_of_group_;
  std::vector<NodeSet> gpus_of_group_;  // only those with a link to another GPU
  std::vector<std::int32_t> distance_;
  NodeSet reached_;
  std::vector<std::int64_t> pairs_;
};

}  // namespace

HopCounts count_hops(const Topology& topology, std::int64_t most_steps) {
  return HopCounter(topology).count(most_steps);
}

}  // namespace lockstep
