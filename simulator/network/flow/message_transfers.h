#pragma once

#include <cstdint>
#include <vector>

#include "simulator/network/flow/even_port.h"
#include "simulator/network/flow/fluid_network.h"
#include "simulator/network/flow/fresh_pairs.h"
#include "simulator/network/flow/port_legs.h"
#include "simulator/network/flow/turn_port.h"

namespace lockstep {

/// FreshTransfers by another law, that of packets where these make a difference: each transfer is a
/// message, a queue pair in RoCE's words, which begins when it is started, whatever else is under
/// way between its ends.
///
/// A message has two legs, with a queue between them that takes all that comes:
///
///     sender's port    TurnPort: packets in turn
///     rest of the way  FluidNetwork: max-min fair; EvenPort where that is one port, which nothing
///                      but such legs crosses
///
/// Both begin together, and the message is delivered when both have ended, plus its latency and the
/// wait of its last packet; it is sent then, too, as its sender waits for the last ACK. (What the
/// second leg could not have yet, as the first has not sent it, is not minded: the first one ends
/// later then, and what the second took it takes no more.) At each port of a switch the last packet
/// finds one of another message leaving with the probability of the others' share of the port, and
/// waits for what is left of it, a uniform part of what their packets take in the mean: a draw by
/// seed, ends, source port and port.
///
/// Complexity: a message O(hops + messages on its ports), a route where ports decide, and what its
/// legs take. No allocation a message once the arrays have grown. Memory: FreshPairs', 200 B a
/// port, 64 B a message under way, 250 B and 16 B a hop a lane. ERRORS: those of PathFinder.
class MessageTransfers {
 public:
  /// Refers to all three for as long as it lives. The network has a constraint for each port and
  /// nothing else.
  MessageTransfers(const Topology& topology, PathFinder& paths, FluidNetwork& network,
                   Bytes full_packet, std::uint64_t seed);
  ~MessageTransfers() { network_.deliver(true); }
  MessageTransfers(const MessageTransfers&) = delete;
  MessageTransfers& operator=(const MessageTransfers&) = delete;

  std::size_t connections() const { return pairs_.connections(); }
  std::size_t live() const { return messages_.size() - free_messages_.size(); }
  Time now() const { return now_; }
  /// As those of NetworkEngine.
  ConnectionId connect(NodeId source, NodeId destination, std::int32_t channel);
  void start(ConnectionId connection, Bytes bytes, Time when, std::uint64_t tag);
  Time advance(Time limit, std::vector<NetworkEvent>& events);
  /// From now on the port has this bandwidth, in bits per second.
  void set_capacity(ConstraintId port, double capacity);
  /// Adds what has left over each port to one entry a port; over one that is a leg by itself, of
  /// whole messages.
  void add_bits(std::vector<double>& bits) const;

 private:
  struct Lane {
    std::int32_t next = -1;  ///< the next one that is free
    double packet = 1;       ///< what its message's packets are of a full one
    FreshPairs::Way way;     ///< where the pair draws
  };
  struct Message {
    std::uint64_t tag = 0;
    double bits = 0;
    Time latency;
    std::int32_t pair = -1, lane = -1;
    std::uint16_t source_port = 0;
    std::int16_t legs = 0;  ///< that have not ended
  };

  std::int32_t new_message();
  void begin(std::int32_t message);
  LegLoad load_on(ConstraintId port, Bytes wire) const;
  std::int32_t lane_for(FreshPairs::Pair& pair);
  void lay(std::int32_t lane, const Path& path);
  void note_shared(const std::vector<MaxMin::Term>& ports);
  std::int32_t lone_receiver(const FreshPairs::Pair& pair) const;
  Time wait_of_last(const Message& message) const;
  void end_leg(std::int32_t message);
  void end_legs();

  PathFinder& paths_;
  FluidNetwork& network_;
  Bytes full_packet_;
  std::uint64_t seed_;
  FreshPairs pairs_;
  std::vector<char> queues_;        // per port: a switch sends over it
  std::vector<char> shared_;        // per port: second legs over several ports cross it
  std::vector<Time> packet_times_;  // per port
  PortLegs<TurnPort> senders_;
  PortLegs<EvenPort> receivers_;
  StampQueue<std::int32_t> starts_;       // messages
  StampQueue<std::uint64_t> deliveries_;  // tags
  Time now_;
  Time network_next_ = Time::max();  // when something happens in the network, which lags behind
  std::vector<Message> messages_;
  std::vector<std::int32_t> free_messages_;
  std::vector<Lane> lanes_;      // connections of the network
  std::vector<double> earlier_;  // bits per port, over ways that lanes have left, and of lone legs
  std::vector<NetworkEvent> heard_;
  std::vector<PortLegs<TurnPort>::Ended> sent_;
  std::vector<PortLegs<EvenPort>::Ended> received_;
  std::vector<std::int32_t> starting_;
  std::vector<std::uint64_t> delivered_;
};

}  // namespace lockstep
