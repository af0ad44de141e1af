#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/index.h"
#include "simulator/network/flow/connection_table.h"
#include "simulator/network/flow/path_finder.h"

namespace lockstep {

/// Connections whose every transfer draws a source port (FlowOptions::fresh_ports). SimAI's
/// collectives name a connection for each transfer, hundreds of thousands of which a thousand are
/// under way, so a connection is only a note of its pair and source port. Where a pair has one way,
/// whatever the port, its route is found once.
///
/// Complexity: connect() expected O(1), and a route for the first connection of a pair. Memory: 16
/// B a connection, 100 B and 16 B a hop a pair. ERRORS: those of PathFinder.
class FreshPairs {
 public:
  /// Where a transfer goes.
  struct Way {
    std::vector<MaxMin::Term> ports;
    Time base;       ///< propagation and ack
    Time pipeline;   ///< of a full packet
    Bytes wire{-1};  ///< of the last transfer
    Time latency;    ///< for that
    void lay(const Path& path);
  };
  struct Pair {
    NodeId source, destination;
    std::int32_t channel = 0;
    std::int32_t counter = 0;  ///< the first pair of these nodes, which counts for all channels
    std::uint16_t drawn = 0;   ///< source ports so far
    std::uint16_t turn = 0;    ///< connections that draw in turn, while they are counted
    bool draws = false;        ///< else `way` is that of all its transfers
    std::int32_t free = -1;    ///< see free_lane()
    Way way;
  };

  /// Refers to it for as long as it lives.
  FreshPairs(PathFinder& paths, Bytes full_packet) : paths_(paths), full_packet_(full_packet) {}

  std::size_t connections() const { return connections_.size(); }
  ConnectionId connect(NodeId source, NodeId destination, std::int32_t channel);
  std::int32_t pair_of(ConnectionId id) const { return connections_[id.index()].pair; }
  Pair& operator[](std::int32_t pair) { return pairs_[at(pair)]; }
  const Pair& operator[](std::int32_t pair) const { return pairs_[at(pair)]; }
  /// Of the next transfer on the connection: the port of the connection itself for the first one.
  std::uint16_t next_port(ConnectionId id);
  /// As NetworkEngine::draw_ports(). O(connections).
  void draw_ports(std::span<const ConnectionId> connections, std::int32_t transfers);
  bool used(ConnectionId id) const { return connections_[id.index()].used; }
  /// The way of a transfer of the pair from this port; valid until the next call.
  const Path& path(const Pair& pair, std::uint16_t source_port) {
    return paths_.again(pair.source, pair.destination, pair.channel, source_port);
  }
  Time latency(Way& way, Bytes wire) const;
  /// For who keeps lanes, which a transfer has while it is under way: the first that is free, or
  /// -1, of the pair's own, or of those that all pairs share which draw.
  std::int32_t& free_lane(Pair& pair) { return pair.draws ? free_ : pair.free; }

 private:
  struct Connection {
    std::int32_t pair = -1;
    std::uint16_t source_port = 0;  ///< the last one, or the first if there was none
    std::uint16_t turn = 0;         ///< from one port to the next, of those that are drawn
    std::int32_t drawn = 0;         ///< ports to come
    bool used = false;
  };
  std::int32_t number_of(NodeId source, NodeId destination, std::int32_t channel);
  std::uint16_t draw(const Pair& pair);

  PathFinder& paths_;
  Bytes full_packet_;
  std::vector<Pair> pairs_;
  ConnectionTable pair_number_, counter_;  // index + 1, by channel and of all channels
  std::vector<Connection> connections_;
  std::int32_t free_ = -1;
};

}  // namespace lockstep
