#pragma once

#include <cstdint>
#include <vector>

#include "base/index.h"
#include "simulator/network/flow/connection_table.h"
#include "simulator/network/flow/even_port.h"
#include "simulator/network/flow/fluid_network.h"
#include "simulator/network/flow/path_finder.h"
#include "simulator/network/flow/port_legs.h"
#include "simulator/network/flow/turn_port.h"

namespace lockstep {

/// The transfers of a FlowEngine whose every one draws a source port (FlowOptions::fresh_ports),
/// where nothing but ports tells ways apart: no sprayed routes, no transport, no links that fail.
/// Each is a message of its own, a queue pair in RoCE's words, which begins when it is started,
/// whatever else is under way between its ends.
///
/// A message has two legs, with a queue between them that takes all that comes:
///
///     sender's port    TurnPorts: packets in turn
///     rest of the way  FluidNetwork: max-min fair
///
/// Both begin together, and the message is delivered when both have ended, plus its latency and the
/// wait of its last packet. (What the second leg could not have yet, as the first has not sent it,
/// is not minded: the first one ends later then, and what the second took it takes no more.) A
/// switch lets packets leave as they came: at each of its ports the last one finds a packet of
/// another message leaving with the probability of the others' share of the port, and waits for
/// what is left of it, a uniform part: a draw by seed, ends, source port and port.
///
/// SimAI's collectives name a connection for each transfer, hundreds of thousands of which a
/// thousand are under way. So a connection here is only a note of its pair and source port; a
/// message has a lane, which is a connection of the FluidNetwork, from its start until its second
/// leg has ended. Where a pair has one way, whatever the port, its route is found once and its
/// lanes keep to it; else a lane takes the way that its message's port draws.
///
/// Complexity: connect() expected O(1), and a route for the first connection of a pair; a message
/// O(hops + messages on its ports), a route where ports decide, and what its legs take. No
/// allocation a message once the arrays have grown. Memory: 12 B a connection, 100 B a pair, 250 B
/// and 16 B a hop a lane. ERRORS: those of PathFinder.
class FreshTransfers {
 public:
  /// Refers to all three for as long as it lives. The network has a constraint for each port and
  /// nothing else.
  FreshTransfers(const Topology& topology, PathFinder& paths, FluidNetwork& network,
                 const FlowOptions& options);
  ~FreshTransfers() { network_.deliver(true); }
  FreshTransfers(const FreshTransfers&) = delete;
  FreshTransfers& operator=(const FreshTransfers&) = delete;

  std::size_t connections() const { return connections_.size(); }
  std::size_t live() const { return messages_.size() - free_messages_.size(); }
  Time now() const { return now_; }
  /// As those of NetworkEngine.
  ConnectionId connect(NodeId source, NodeId destination, std::int32_t channel);
  void start(ConnectionId connection, Bytes bytes, Time when, std::uint64_t tag);
  Time advance(Time limit, std::vector<NetworkEvent>& events);
  /// From now on the port has this bandwidth, in bits per second.
  void set_capacity(ConstraintId port, double capacity);
  /// Adds what has left over each port to one entry a port; over a sender's, of whole messages.
  void add_bits(std::vector<double>& bits) const;

 private:
  /// Where a message goes.
  struct Way {
    std::vector<MaxMin::Term> ports;  ///< the first one is the sender's
    Time base;                        ///< propagation and ack
    Time pipeline;                    ///< of a full packet
    Bytes wire{-1};                   ///< of the last message; for that:
    Time latency;
    PortLoad sent, received;  ///< over the first port, and over the last one
  };
  struct Pair {
    NodeId source, destination;
    std::int32_t channel = 0;
    std::int32_t counter = 0;    ///< the first pair of these nodes, which counts for all channels
    std::uint16_t drawn = 0;     ///< source ports so far
    bool draws = false;          ///< else `way` is that of all its messages
    std::int32_t receiver = -1;  ///< the only port of its second legs, if that may be on its own
    std::int32_t free = -1;      ///< then its first lane that is free
    Way way;
  };
  struct Connection {
    std::int32_t pair = -1;
    std::uint16_t source_port = 0;
    bool used = false;
  };
  struct Lane {
    std::int32_t next = -1;  ///< the next one that is free
    Way way;                 ///< where the pair draws
  };
  struct Message {
    std::uint64_t tag = 0;
    double bits = 0;
    Time latency;
    std::int32_t pair = -1, lane = -1;
    std::uint16_t source_port = 0;
    std::int16_t legs = 0;  ///< that have not ended
  };

  std::int32_t pair_of(NodeId source, NodeId destination, std::int32_t channel);
  std::uint16_t draw(const Pair& pair);
  std::int32_t new_message();
  void begin(std::int32_t message);
  std::int32_t lane_for(Pair& pair);
  void lay(std::int32_t lane, const Path& path);
  void note_shared(const Path& path);
  std::int32_t lone_receiver(const Pair& pair) const;
  PortLoad load_on(ConstraintId port, Bytes wire) const;
  void measure(Way& way, Bytes wire) const;
  const Way& way_of(const Message& message) const;
  Time wait_of_last(const Message& message) const;
  void end_leg(std::int32_t message);
  void end_legs(std::vector<NetworkEvent>& events);

  PathFinder& paths_;
  FluidNetwork& network_;
  Bytes full_packet_;
  std::uint64_t seed_;
  std::vector<char> queues_;        // per port: a switch sends over it
  std::vector<char> shared_;        // per port: second legs over several ports cross it
  std::vector<Time> packet_times_;  // per port
  PortLegs<TurnPort> senders_;
  PortLegs<EvenPort> receivers_;
  StampQueue<std::int32_t> starts_;       // messages
  StampQueue<std::uint64_t> deliveries_;  // tags
  Time now_;
  Time network_next_ = Time::max();  // when something happens in the network, which lags behind
  std::vector<Pair> pairs_;
  ConnectionTable pair_number_, counter_;  // index + 1, by channel and of all channels
  std::vector<Connection> connections_;
  std::vector<Message> messages_;
  std::vector<std::int32_t> free_messages_;
  std::vector<Lane> lanes_;      // connections of the network
  std::int32_t free_ = -1;       // lanes for pairs that draw
  std::vector<double> earlier_;  // bits per port, over ways that lanes have left, and of senders
  std::vector<NetworkEvent> heard_;
  std::vector<PortLegs<TurnPort>::Ended> sent_;
  std::vector<PortLegs<EvenPort>::Ended> received_;
  std::vector<std::int32_t> starting_;
  std::vector<std::uint64_t> delivered_;
};

}  // namespace lockstep
