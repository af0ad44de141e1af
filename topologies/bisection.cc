#include "topologies/bisection.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "topologies/min_cut.h"

namespace lockstep {
namespace {

/// Which GPUs are in the first half.
using Side = std::vector<bool>;  // by node

std::int64_t rate_of(const Topology& t, const Link& link) {
  return t.link_classes[static_cast<std::size_t>(link.link_class)].rate.bits_per_second();
}

/// Switching nodes that a cut may put on either side, and the links among them, merged.
class CutGraph {
 public:
  explicit CutGraph(const Topology& topology) : topology_(topology), index_(topology.nodes.size()) {
    for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
      if (topology.nodes[i].kind != NodeKind::kGpu) {
        index_[i] = switches_++;
      }
    }
    std::map<std::pair<std::size_t, std::size_t>, std::int64_t> merged;
    for (const Link& link : topology.links) {
      if (!is_gpu(link.a) && !is_gpu(link.b)) {
        merged[std::minmax(index_[link.a.index()], index_[link.b.index()])] +=
            rate_of(topology, link);
      }
    }
    linked_.resize(switches_);
    for (const auto& [ends, rate] : merged) {
      inner_.push_back({ends.first, ends.second, rate});
      linked_[ends.first] = linked_[ends.second] = true;
    }
  }

  std::size_t inner_links() const { return inner_.size(); }

  std::int64_t cut(const Side& first) const {
    std::vector<std::int64_t> to_first(switches_), to_second(switches_);
    std::int64_t total = 0;
    for (const Link& link : topology_.links) {
      if (is_gpu(link.a) && is_gpu(link.b)) {
        total += first[link.a.index()] != first[link.b.index()] ? rate_of(topology_, link) : 0;
      } else if (is_gpu(link.a) || is_gpu(link.b)) {
        const NodeId gpu = is_gpu(link.a) ? link.a : link.b;
        const NodeId other = is_gpu(link.a) ? link.b : link.a;
        (first[gpu.index()] ? to_first : to_second)[index_[other.index()]] +=
            rate_of(topology_, link);
      }
    }
    MinCut graph(switches_ + 2);
    for (std::size_t i = 0; i < switches_; ++i) {
      if (!linked_[i]) {
        total += std::min(to_first[i], to_second[i]);
        continue;
      }
      if (to_first[i] > 0) {
        graph.connect(switches_, i, to_first[i], 0);
      }
      if (to_second[i] > 0) {
        graph.connect(i, switches_ + 1, to_second[i], 0);
      }
    }
    for (const Inner& link : inner_) {
      graph.connect(link.a, link.b, link.rate, link.rate);
    }
    return total + graph.between(switches_, switches_ + 1);
  }

 private:
  struct Inner {
    std::size_t a, b;
    std::int64_t rate;
  };
  bool is_gpu(NodeId id) const { return topology_.nodes[id.index()].kind == NodeKind::kGpu; }

  const Topology& topology_;
  std::vector<std::size_t> index_;  // by node
  std::size_t switches_ = 0;
  std::vector<bool> linked_;  // by switch: to another switch
  std::vector<Inner> inner_;
};

/// GPUs by server, servers in order of their first GPU.
std::vector<std::vector<NodeId>> gpus_by_server(const Topology& topology) {
  std::vector<std::vector<NodeId>> servers;
  std::map<std::int32_t, std::size_t> position;
  for (const NodeId gpu : topology.gpus()) {
    const std::int32_t server = topology.nodes[gpu.index()].server;
    const auto [found, added] = position.emplace(server, servers.size());
    if (added) {
      servers.emplace_back();
    }
    servers[found->second].push_back(gpu);
  }
  return servers;
}

/// What is linked to what in a fabric of at most two tiers.
struct TwoTiers {
  using Rates = std::map<std::int32_t, std::int64_t>;  // by node
  std::vector<Rates> leaves_of_server;
  std::map<std::int32_t, Rates> spines_of_leaf;
  Rates down_of_leaf;
};

/// Nothing when some link fits in no such fabric, or a server is cheaper to cut than its NICs.
std::optional<TwoTiers> two_tiers(const Topology& topology) {
  TwoTiers fabric;
  std::map<std::int32_t, std::size_t> server_of;
  const std::vector<std::vector<NodeId>> servers = gpus_by_server(topology);
  fabric.leaves_of_server.resize(servers.size());
  for (std::size_t s = 0; s < servers.size(); ++s) {
    for (const NodeId gpu : servers[s]) {
      server_of[gpu.value] = s;
    }
  }
  TwoTiers::Rates nvlink, nic;
  for (const Link& link : topology.links) {
    const auto height = [&](NodeId id) {
      const Node& node = topology.nodes[id.index()];
      return node.kind == NodeKind::kSwitch ? static_cast<int>(node.tier)
             : node.kind == NodeKind::kGpu  ? 0
                                            : -1;
    };
    const bool upwards =
        height(link.a) == 0 || (height(link.b) != 0 && height(link.a) < height(link.b));
    const NodeId low = upwards ? link.a : link.b;
    const NodeId high = upwards ? link.b : link.a;
    const std::int64_t rate = rate_of(topology, link);
    if (height(low) == 0 && height(high) == -1) {
      nvlink[low.value] += rate;
    } else if (height(low) == 0 && height(high) == 1) {
      nic[low.value] += rate;
      fabric.down_of_leaf[high.value] += rate;
      fabric.leaves_of_server[server_of[low.value]][high.value] += rate;
    } else if (height(low) == 1 && height(high) == 2) {
      fabric.spines_of_leaf[low.value][high.value] += rate;
    } else {
      return std::nullopt;
    }
  }
  for (const std::vector<NodeId>& server : servers) {
    for (const NodeId gpu : server) {
      if (server.size() > 1 && nvlink[gpu.value] < nic[gpu.value]) {
        return std::nullopt;
      }
    }
  }
  return fabric;
}

/// The common value of all entries, if there is one.
std::optional<std::int64_t> common(const TwoTiers::Rates& rates) {
  for (const auto& [node, rate] : rates) {
    if (rate != rates.begin()->second) {
      return std::nullopt;
    }
  }
  return rates.empty() ? 0 : rates.begin()->second;
}

std::set<std::int32_t> nodes_in(const TwoTiers::Rates& rates) {
  std::set<std::int32_t> nodes;
  for (const auto& [node, rate] : rates) {
    nodes.insert(node);
  }
  return nodes;
}

/// Whether sets that differ have nothing in common.
bool equal_or_disjoint(const std::set<std::set<std::int32_t>>& sets) {
  std::set<std::int32_t> all;
  std::size_t total = 0;
  for (const std::set<std::int32_t>& set : sets) {
    all.insert(set.begin(), set.end());
    total += set.size();
  }
  return all.size() == total;
}

/// A lower bound on the cut of every split of a two-tier Clos fabric into halves of whole servers.
///
/// Let S segments of P leaves each carry equal servers, evenly; a leaf has D to its GPUs and U to
/// its spines, evenly. If a share x of a segment's servers is in the first half and the spines are
/// all on the first side, each of its leaves is cut by c(x) = min((1-x) D, x D + U), which is
/// concave; the mean of x is 1/2, so the sum is least where at most one x is not 0 or 1:
/// P (floor(S/2) min(D, U) + [S odd] D/2). Spines on the other side give the same with x for 1-x,
/// spines on both sides lie between, since a minimum of linear functions is concave in their share.
std::optional<std::int64_t> clos_lower_bound(const Topology& topology) {
  std::optional<TwoTiers> fabric = two_tiers(topology);
  if (!fabric || fabric->leaves_of_server.empty()) {
    return std::nullopt;
  }
  std::map<std::set<std::int32_t>, std::int64_t> segments;  // servers by set of leaves
  std::set<std::set<std::int32_t>> segment_leaves, planes;
  const std::optional<std::int64_t> share = common(fabric->leaves_of_server[0]);
  for (const TwoTiers::Rates& leaves : fabric->leaves_of_server) {
    if (leaves.empty() || !share || common(leaves) != share) {
      return std::nullopt;
    }
    ++segments[nodes_in(leaves)];
    segment_leaves.insert(nodes_in(leaves));
  }
  const auto count = static_cast<std::int64_t>(segments.size());
  const auto& [first_leaves, first_servers] = *segments.begin();
  for (const auto& [leaves, servers] : segments) {
    if (leaves.size() != first_leaves.size() || servers != first_servers) {
      return std::nullopt;
    }
  }
  const std::optional<std::int64_t> down = common(fabric->down_of_leaf);
  TwoTiers::Rates up;
  for (const auto& [leaf, rate] : fabric->down_of_leaf) {
    const TwoTiers::Rates& spines = fabric->spines_of_leaf[leaf];
    const std::optional<std::int64_t> uplink = common(spines);
    if (!uplink) {
      return std::nullopt;
    }
    up[leaf] = *uplink * static_cast<std::int64_t>(spines.size());
    planes.insert(nodes_in(spines));
  }
  const bool halves = count % 2 == 0 || first_servers % 2 == 0;
  if (!down || !common(up) || !halves || !equal_or_disjoint(segment_leaves) ||
      !equal_or_disjoint(planes)) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(first_leaves.size()) *
         (count / 2 * std::min(*down, *common(up)) + (count % 2 != 0 ? *down / 2 : 0));
}

/// No switches, a link between every two GPUs, all alike: every split into halves cuts the same.
bool is_full_mesh(const Topology& topology) {
  const auto gpus = static_cast<std::int64_t>(topology.nodes.size());
  // A valid topology without switches has at least these links.
  return topology.count(NodeKind::kGpu) == gpus && topology.link_classes.size() == 1 &&
         static_cast<std::int64_t>(topology.links.size()) == gpus * (gpus - 1) / 2;
}

}  // namespace

Bisection bisect(const Topology& topology) {
  const CutGraph graph(topology);
  const std::vector<std::vector<NodeId>> servers = gpus_by_server(topology);
  const std::size_t count = servers.size();
  std::optional<std::int64_t> least;
  Bisection best;
  const auto consider = [&](const Side& first, const std::string& split) {
    const std::int64_t cut = graph.cut(first);
    if (!least || cut < *least) {
      least = cut;
      best.split = split;
      best.smaller = 0;
      for (const std::vector<NodeId>& server : servers) {
        best.smaller +=
            std::ranges::count_if(server, [&](NodeId gpu) { return first[gpu.index()]; });
      }
      best.smaller = std::min(best.smaller, topology.count(NodeKind::kGpu) - best.smaller);
    }
  };
  if (count > 1) {
    const std::size_t work = 1 + graph.inner_links() + topology.links.size();
    std::size_t splits_left = std::clamp<std::size_t>(8'000'000 / work, 2, 64);
    for (std::size_t block = count; block >= 2 && splits_left > 0; --block) {
      if (count % block != 0 || (block % 2 != 0 && block != count)) {
        continue;
      }
      --splits_left;
      Side first(topology.nodes.size());
      for (std::size_t s = 0; s < count; ++s) {
        for (const NodeId gpu : servers[s]) {
          first[gpu.index()] = s % block < block / 2;
        }
      }
      consider(first, block == count ? "the first against the second half of the servers"
                                     : fmt::format("alternate halves of every {} servers", block));
    }
  }
  const bool even_servers = std::all_of(servers.begin(), servers.end(),
                                        [](const auto& server) { return server.size() % 2 == 0; });
  if (even_servers || count == 1) {
    Side first(topology.nodes.size());
    for (const std::vector<NodeId>& server : servers) {
      for (std::size_t i = 0; i < server.size() / 2; ++i) {
        first[server[i].index()] = true;
      }
    }
    consider(first, "the first against the second half of the GPUs of every server");
  }
  best.bandwidth = Bandwidth::bits_per_second(*least);
  const std::optional<std::int64_t> bound = clos_lower_bound(topology);
  best.exact = is_full_mesh(topology) || (bound && *least <= *bound);
  return best;
}

}  // namespace lockstep
