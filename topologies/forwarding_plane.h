#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "topologies/topology.h"

namespace lockstep {

/// A forwarder reached over a port: an index into the plane's own numbering, not a node id.
struct NextHop {
  std::int32_t forwarder = -1;
  PortId port;
  friend bool operator==(const NextHop&, const NextHop&) = default;
};

/// Shortest paths over the nodes that forward one kind of traffic: the NVSwitches (each server's
/// apart from all others') or the switches of the fabric. GPUs hang on forwarders and never
/// forward. Router has one plane of each kind.
///
/// A *target* is a distinct set of forwarders on which a destination hangs: all GPUs below one leaf
/// share it. Per target there is a table of hop counts and next hops over the forwarders of its
/// domain, made on first use, so memory is O(targets * forwarders); where that exceeds a budget,
/// trim() drops all tables and they are made anew as needed.
class ForwardingPlane {
 public:
  static constexpr std::uint16_t kUnreachable = 0xffff;

  /// `kind` is kNvSwitch or kSwitch. Keeps no reference. O(nodes + links).
  ForwardingPlane(const Topology& topology, const Adjacency& adjacency, NodeKind kind);

  std::int32_t size() const { return static_cast<std::int32_t>(nodes_.size()); }
  NodeId node(std::int32_t forwarder) const { return nodes_[index(forwarder)]; }
  /// The forwarder that `node` is, or -1.
  std::int32_t forwarder(NodeId node) const { return forwarder_[node.index()]; }
  /// The forwarders on which a GPU hangs, ascending by node id, then link; ports leave the GPU.
  std::span<const NextHop> uplinks(NodeId node) const {
    return {uplinks_.data() + uplink_begin_[node.index()],
            uplinks_.data() + uplink_begin_[node.index() + 1]};
  }
  /// The target of traffic to `node`, a GPU or a forwarder; -1 if it hangs on nothing.
  std::int32_t target(NodeId node) const { return target_[node.index()]; }

  /// Hops from a forwarder to the nearest forwarder of the target, or kUnreachable.
  std::uint16_t distance(std::int32_t target, std::int32_t forwarder) {
    return made(target).distance_of(forwarder);
  }
  /// Those neighbours of the forwarder that are one hop nearer to the target, ascending by node id,
  /// then link. Valid until the next call. PRECONDITION: 0 < distance < kUnreachable.
  std::span<const NextHop> next_hops(std::int32_t target, std::int32_t forwarder) {
    Table& table = tables_[index(target)];
    std::int32_t& number = table.next[index(forwarder) - table.first];
    if (number < 0) {
      number = find_next_hops(table, forwarder);
    }
    return {lists_.data() + list_begin_[index(number)],
            lists_.data() + list_begin_[index(number) + 1]};
  }

  /// Drops the tables if they take more than `budget` bytes. Call between routes.
  void trim(std::size_t budget);
  /// Bytes in tables and next-hop lists now.
  std::size_t table_bytes() const { return table_bytes_; }

 private:
  struct Table {
    std::size_t first = 0;                ///< forwarder of the domain
    std::vector<std::uint16_t> distance;  ///< by forwarder within the domain; empty: not yet made
    std::vector<std::int32_t> next;       ///< list number, or -1: not yet made
    std::uint16_t distance_of(std::int32_t forwarder) const {
      return distance[index(forwarder) - first];
    }
  };
  struct ListHash {
    std::size_t operator()(const std::vector<NextHop>& list) const;
  };

  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }
  void number_forwarders(const Topology& topology, NodeKind kind);
  void connect(const Topology& topology, const Adjacency& adjacency);
  void group_targets();
  const Table& made(std::int32_t target) {
    if (tables_[index(target)].distance.empty()) {
      make(target);
    }
    return tables_[index(target)];
  }
  void make(std::int32_t target);
  std::int32_t find_next_hops(const Table& table, std::int32_t forwarder);
  std::int32_t intern(const std::vector<NextHop>& list);
  std::size_t first_of_domain(std::int32_t target) const {
    return domain_begin_[index(domain_[index(members_[member_begin_[index(target)]])])];
  }

  std::vector<NodeId> nodes_;              // forwarder -> node, by domain, then by id
  std::vector<std::int32_t> domain_;       // of each forwarder
  std::vector<std::size_t> domain_begin_;  // first forwarder of each domain, and the end
  std::vector<std::int32_t> forwarder_;    // node -> forwarder, or -1

  std::vector<std::size_t> next_begin_;  // CSR: neighbours of each forwarder within its domain
  std::vector<NextHop> next_;
  std::vector<std::size_t> uplink_begin_;  // CSR: forwarders next to each GPU
  std::vector<NextHop> uplinks_;

  std::vector<std::int32_t> target_;       // node -> target, or -1
  std::vector<std::size_t> member_begin_;  // CSR: forwarders of each target
  std::vector<std::int32_t> members_;

  std::vector<Table> tables_;
  std::vector<std::size_t> list_begin_;  // CSR: the distinct lists of next hops
  std::vector<NextHop> lists_;
  std::unordered_map<std::vector<NextHop>, std::int32_t, ListHash> list_number_;
  std::size_t table_bytes_ = 0;
  std::vector<NextHop> scratch_list_;
  std::vector<std::int32_t> scratch_queue_;
};

}  // namespace lockstep
