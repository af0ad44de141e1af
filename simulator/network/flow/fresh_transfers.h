#pragma once

#include <cstdint>
#include <vector>

#include "base/index.h"
#include "simulator/network/flow/connection_table.h"
#include "simulator/network/flow/fluid_network.h"
#include "simulator/network/flow/path_finder.h"

namespace lockstep {

/// The transfers of a FlowEngine whose every one draws a source port (FlowOptions::fresh_ports),
/// where nothing but ports tells ways apart: no sprayed routes, no transport, no links that fail.
///
/// SimAI's collectives name a connection for each transfer, hundreds of thousands of which a
/// thousand are under way. So a connection here is only a note of its pair and source port, and has
/// a lane, which is a connection of the FluidNetwork, from its start until its last bit has left.
/// Where a pair has one way, whatever the port, its route is found once and its lanes keep to it;
/// else a lane takes the way that its connection's port draws.
///
/// Complexity: connect() expected O(1), and a route for the first connection of a pair; start() and
/// recall() O(hops) at most, beside what FluidNetwork takes, and a route where ports decide. No
/// allocation a transfer once the arrays have grown. Memory: 16 B a connection, 100 B a pair, 250 B
/// and 16 B a hop a lane. ERRORS: those of PathFinder.
class FreshTransfers {
 public:
  /// Refers to both for as long as it lives. The network has a constraint for each port and nothing
  /// else.
  FreshTransfers(PathFinder& paths, FluidNetwork& network, Bytes full_packet);
  ~FreshTransfers() { network_.tell_emptied(false); }
  FreshTransfers(const FreshTransfers&) = delete;
  FreshTransfers& operator=(const FreshTransfers&) = delete;

  std::size_t connections() const { return connections_.size(); }
  /// As those of NetworkEngine.
  ConnectionId connect(NodeId source, NodeId destination, std::int32_t channel);
  void start(ConnectionId connection, Bytes bytes, Time when, std::uint64_t tag);
  /// Takes the lanes back that nothing is on any more. After each advance() of the network.
  void recall();
  /// Adds what has left over each port to one entry a port.
  void add_bits(std::vector<double>& bits) const;

 private:
  /// Where a flow goes.
  struct Way {
    std::vector<MaxMin::Term> ports;
    Time base;       ///< propagation and ack
    Time pipeline;   ///< of a full packet
    Bytes wire{-1};  ///< of the last flow
    Time latency;    ///< for that
  };
  struct Pair {
    NodeId source, destination;
    std::int32_t channel = 0;
    std::int32_t counter = 0;  ///< the first pair of these nodes, which counts for all channels
    std::uint16_t drawn = 0;   ///< source ports so far
    bool draws = false;        ///< else `way` is that of all its transfers
    std::int32_t free = -1;    ///< then its first lane that is free
    Way way;
  };
  struct Connection {
    std::int32_t pair = -1;
    std::int32_t lane = -1;  ///< that it had last
    std::uint16_t source_port = 0;
    bool used = false;
  };
  struct Lane {
    std::int32_t connection = -1;  ///< that has it, if one does
    std::int32_t pair = -1;        ///< of the connection that has it or had it last
    std::int32_t next = -1;        ///< the next one that is free
    Way way;                       ///< where the pair draws
  };

  std::int32_t pair_of(NodeId source, NodeId destination, std::int32_t channel);
  std::uint16_t draw(const Pair& pair);
  std::int32_t lane_for(Pair& pair);
  void lay(std::int32_t lane, const Path& path);
  Time latency(Way& way, Bytes wire) const;
  const Way& way_of(const Lane& lane) const;

  PathFinder& paths_;
  FluidNetwork& network_;
  Bytes full_packet_;
  std::vector<Pair> pairs_;
  ConnectionTable pair_number_, counter_;  // index + 1, by channel and of all channels
  std::vector<Connection> connections_;
  std::vector<Lane> lanes_;      // connections of the network
  std::int32_t free_ = -1;       // lanes for pairs that draw
  std::vector<double> earlier_;  // bits per port, over ways that lanes have left
};

}  // namespace lockstep
