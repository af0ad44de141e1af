#include "topologies/forwarding_plane.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "base/error.h"

namespace lockstep {

ForwardingPlane::ForwardingPlane(const Topology& topology, const Adjacency& adjacency,
                                 NodeKind kind) {
  number_forwarders(topology, kind);
  connect(topology, adjacency);
  group_targets();
}

void ForwardingPlane::number_forwarders(const Topology& topology, NodeKind kind) {
  for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
    if (topology.nodes[i].kind == kind) {
      nodes_.emplace_back(i);
    }
  }
  const auto server = [&](NodeId node) {
    return kind == NodeKind::kNvSwitch ? topology.nodes[node.index()].server : 0;
  };
  std::stable_sort(nodes_.begin(), nodes_.end(),
                   [&](NodeId a, NodeId b) { return server(a) < server(b); });
  forwarder_.assign(topology.nodes.size(), -1);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (i == 0 || server(nodes_[i]) != server(nodes_[i - 1])) {
      domain_begin_.push_back(i);
    }
    domain_.push_back(static_cast<std::int32_t>(domain_begin_.size()) - 1);
    forwarder_[nodes_[i].index()] = static_cast<std::int32_t>(i);
  }
  domain_begin_.push_back(nodes_.size());
}

void ForwardingPlane::connect(const Topology& topology, const Adjacency& adjacency) {
  next_begin_.push_back(0);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    for (const Neighbour& neighbour : adjacency.of(nodes_[i])) {
      const std::int32_t other = forwarder(neighbour.node);
      if (other >= 0 && domain_[index(other)] == domain_[i]) {
        next_.push_back({other, neighbour.port});
      }
    }
    next_begin_.push_back(next_.size());
  }
  uplink_begin_.push_back(0);
  for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
    const Node& node = topology.nodes[i];
    if (node.kind == NodeKind::kGpu) {
      for (const Neighbour& neighbour : adjacency.of(NodeId(i))) {
        const Node& other = topology.nodes[neighbour.node.index()];
        const bool mine = other.kind == NodeKind::kSwitch || other.server == node.server;
        if (forwarder(neighbour.node) >= 0 && mine) {
          uplinks_.push_back({forwarder(neighbour.node), neighbour.port});
        }
      }
    }
    uplink_begin_.push_back(uplinks_.size());
  }
}

void ForwardingPlane::group_targets() {
  std::map<std::vector<std::int32_t>, std::int32_t> number;
  std::vector<std::int32_t> members;
  member_begin_.push_back(0);
  target_.assign(forwarder_.size(), -1);
  for (std::size_t i = 0; i < forwarder_.size(); ++i) {
    members.clear();
    if (forwarder_[i] >= 0) {
      members.push_back(forwarder_[i]);
    }
    for (const NextHop& uplink : uplinks(NodeId(i))) {
      if (members.empty() || members.back() != uplink.forwarder) {
        members.push_back(uplink.forwarder);
      }
    }
    if (members.empty()) {
      continue;
    }
    const auto [place, is_new] =
        number.try_emplace(members, static_cast<std::int32_t>(number.size()));
    if (is_new) {
      members_.insert(members_.end(), members.begin(), members.end());
      member_begin_.push_back(members_.size());
    }
    target_[i] = place->second;
  }
  tables_.resize(number.size());
  list_begin_.push_back(0);
}

void ForwardingPlane::make(std::int32_t target) {
  Table& table = tables_[index(target)];
  const std::size_t first = first_of_domain(target);
  table.first = first;
  const std::size_t count = domain_begin_[index(domain_[first]) + 1] - first;
  table.distance.assign(count, kUnreachable);
  table.next.assign(count, -1);
  table_bytes_ += count * (sizeof(std::uint16_t) + sizeof(std::int32_t));
  scratch_queue_.clear();
  for (std::size_t i = member_begin_[index(target)]; i < member_begin_[index(target) + 1]; ++i) {
    table.distance[index(members_[i]) - first] = 0;
    scratch_queue_.push_back(members_[i]);
  }
  // Breadth first, until all are reached: behind two tiers that is after two forwarders.
  for (std::size_t head = 0; head < scratch_queue_.size() && scratch_queue_.size() < count;
       ++head) {
    const std::size_t from = index(scratch_queue_[head]);
    const int next = table.distance[from - first] + 1;
    LOCKSTEP_CHECK(next < kUnreachable, "a path of more than 65,534 hops");
    for (std::size_t i = next_begin_[from]; i < next_begin_[from + 1]; ++i) {
      std::uint16_t& distance = table.distance[index(next_[i].forwarder) - first];
      if (distance == kUnreachable) {
        distance = static_cast<std::uint16_t>(next);
        scratch_queue_.push_back(next_[i].forwarder);
      }
    }
  }
}

/// The number of their list.
std::int32_t ForwardingPlane::find_next_hops(const Table& table, std::int32_t forwarder) {
  const int wanted = table.distance_of(forwarder) - 1;
  scratch_list_.clear();
  for (std::size_t i = next_begin_[index(forwarder)]; i < next_begin_[index(forwarder) + 1]; ++i) {
    if (table.distance_of(next_[i].forwarder) == wanted) {
      scratch_list_.push_back(next_[i]);
    }
  }
  return intern(scratch_list_);
}

std::size_t ForwardingPlane::ListHash::operator()(const std::vector<NextHop>& list) const {
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a over the ports
  for (const NextHop& hop : list) {
    hash = (hash ^ static_cast<std::uint32_t>(hop.port.value)) * 0x100000001b3U;
  }
  return hash;
}

std::int32_t ForwardingPlane::intern(const std::vector<NextHop>& list) {
  const auto [place, is_new] =
      list_number_.try_emplace(list, static_cast<std::int32_t>(list_number_.size()));
  if (is_new) {
    lists_.insert(lists_.end(), list.begin(), list.end());
    list_begin_.push_back(lists_.size());
    constexpr std::size_t kMapNode = 64;  // what the hash map spends on an entry, about
    table_bytes_ += 2 * list.size() * sizeof(NextHop) + kMapNode;
  }
  return place->second;
}

void ForwardingPlane::trim(std::size_t budget) {
  if (table_bytes_ <= budget) {
    return;
  }
  for (Table& table : tables_) {
    table = Table();
  }
  list_number_.clear();
  lists_.clear();
  list_begin_.assign(1, 0);
  table_bytes_ = 0;
}

}  // namespace lockstep
