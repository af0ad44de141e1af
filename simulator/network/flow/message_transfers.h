#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/network/flow/delay_queue.h"
#include "simulator/network/flow/even_port.h"
#include "simulator/network/flow/fabric_legs.h"
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
///     rest of the way  FabricLegs: max-min fair; EvenPort where that is one port, which nothing
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
/// legs take. No allocation a message once the arrays have grown. Memory: FreshPairs', 100 B a pair
/// and a port, 200 B a message under way. ERRORS: those of PathFinder.
class MessageTransfers {
 public:
  /// Refers to all three for as long as it lives. The network has a constraint for each port and
  /// nothing else.
  MessageTransfers(const Topology& topology, PathFinder& paths, FluidNetwork& network,
                   Bytes full_packet, std::uint64_t seed);
  std::size_t connections() const { return pairs_.connections(); }
  std::size_t live() const { return messages_.size() - free_messages_.size(); }
  Time now() const { return now_; }
  /// As those of NetworkEngine.
  ConnectionId connect(NodeId source, NodeId destination, std::int32_t channel);
  void draw_ports(std::span<const ConnectionId> connections, std::int32_t messages) {
    pairs_.draw_ports(connections, messages);
  }
  void start(ConnectionId connection, Bytes bytes, Time when, std::uint64_t tag);
  Time advance(Time limit, std::vector<NetworkEvent>& events);
  /// From now on the port has this bandwidth, in bits per second.
  void set_capacity(ConstraintId port, double capacity);
  /// Adds what has left over each port to one entry a port; over one that is a leg by itself, of
  /// whole messages.
  void add_bits(std::vector<double>& bits) const;

 private:
  struct Message {
    std::uint64_t tag = 0;
    Bytes wire;
    Time latency;
    std::int32_t pair = -1;
    std::uint16_t source_port = 0;
    std::int8_t legs = 0;    ///< that have not ended
    bool in_fabric = false;  ///< the second one
  };
  /// What the last message of a pair was on its ports: the next one is the same most of the time.
  struct Loads {
    Bytes wire{-1};
    std::int32_t sender = -1, receiver = -1;
    LegLoad at_sender, at_receiver;
    Time latency;
    std::int32_t shared_ports = 0;  ///< so many when it was begun
  };

  std::int32_t new_message();
  void begin(std::int32_t message);
  void begin_in_fabric(std::int32_t message, std::span<const MaxMin::Term> ports);
  LegLoad load_on(std::int32_t port, Bytes wire) const;
  const Loads* known_alone(const Message& message) const;
  Loads& loads(std::int32_t pair, Bytes wire, std::int32_t sender, std::int32_t receiver);
  void note_shared(const std::vector<MaxMin::Term>& ports);
  std::int32_t lone_receiver(const FreshPairs::Pair& pair) const;
  Time wait_of_last(std::int32_t message) const;
  void end_leg(std::int32_t message);
  void end_legs();

  PathFinder& paths_;
  FluidNetwork& network_;
  Bytes full_packet_;
  std::uint64_t seed_;
  FreshPairs pairs_;
  FreshPairs::Way drawn_;           // that of the last message whose source port decides
  std::vector<char> queues_;        // per port: a switch sends over it
  std::vector<char> shared_;        // per port: second legs over several ports cross it
  std::int32_t shared_ports_ = 0;   // of these
  std::vector<Time> packet_times_;  // per port
  std::vector<Loads> loads_;        // per pair
  PortLegs<TurnPort> senders_;
  PortLegs<EvenPort> receivers_;
  FabricLegs fabric_;
  Bytes last_bytes_, last_wire_;          // of the last message that was started
  DelayQueue<std::int32_t> starts_;       // messages
  DelayQueue<std::uint64_t> deliveries_;  // tags
  Time now_;
  std::vector<Message> messages_;
  std::vector<std::vector<std::int32_t>>
      queued_at_;  // per message in the fabric: ports of switches
  std::vector<std::int32_t> free_messages_;
  std::vector<double> earlier_;  // bits per port, of lone legs that are over
};

}  // namespace lockstep
