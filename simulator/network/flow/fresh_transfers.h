#pragma once

#include <cstdint>
#include <vector>

#include "simulator/network/flow/fluid_network.h"
#include "simulator/network/flow/fresh_pairs.h"

namespace lockstep {

/// The transfers of a FlowEngine whose every one draws a source port (FlowOptions::fresh_ports),
/// where nothing but ports tells ways apart: no sprayed routes, no transport, no links that fail.
///
/// A transfer has a lane, which is a connection of the FluidNetwork, from its start until its last
/// bit has left. The lanes of a pair with one way keep to it; others take the way that their
/// transfer's port draws.
///
/// Complexity: start() and recall() O(hops) at most, beside what FluidNetwork takes, and a route
/// where ports decide. No allocation a transfer once the arrays have grown. Memory: FreshPairs', 4
/// B a connection, 250 B and 16 B a hop a lane. ERRORS: those of PathFinder.
class FreshTransfers {
 public:
  /// Refers to both for as long as it lives. The network has a constraint for each port and nothing
  /// else.
  FreshTransfers(PathFinder& paths, FluidNetwork& network, Bytes full_packet);
  ~FreshTransfers() { network_.tell_emptied(false); }
  FreshTransfers(const FreshTransfers&) = delete;
  FreshTransfers& operator=(const FreshTransfers&) = delete;

  std::size_t connections() const { return pairs_.connections(); }
  /// As those of NetworkEngine.
  ConnectionId connect(NodeId source, NodeId destination, std::int32_t channel) {
    return pairs_.connect(source, destination, channel);
  }
  void start(ConnectionId connection, Bytes bytes, Time when, std::uint64_t tag);
  /// Takes the lanes back that nothing is on any more. After each advance() of the network.
  void recall();
  /// Adds what has left over each port to one entry a port.
  void add_bits(std::vector<double>& bits) const;

 private:
  struct Lane {
    std::int32_t connection = -1;  ///< that has it, if one does
    std::int32_t pair = -1;        ///< of the connection that has it or had it last
    std::int32_t next = -1;        ///< the next one that is free
    FreshPairs::Way way;           ///< where the pair draws
  };

  std::int32_t lane_for(FreshPairs::Pair& pair);
  void lay(std::int32_t lane, const Path& path);
  const FreshPairs::Way& way_of(const Lane& lane) const;

  PathFinder& paths_;
  FluidNetwork& network_;
  FreshPairs pairs_;
  std::vector<std::int32_t> lane_of_;  // per connection: that it had last, -1 before
  std::vector<Lane> lanes_;            // connections of the network
  std::vector<double> earlier_;        // bits per port, over ways that lanes have left
};

}  // namespace lockstep
