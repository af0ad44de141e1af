#include "simulator/network/flow/message_transfers.h"

#include <algorithm>

#include "base/error.h"
#include "base/rng.h"
#include "base/stop_signal.h"

namespace lockstep {
namespace {

Time time_of(double bits, double capacity) {
  return std::max(Time::ps(1), Time::seconds(bits / capacity));
}

std::vector<Time> packet_times(const FluidNetwork& network, Bytes packet) {
  std::vector<Time> times;
  for (std::size_t port = 0; port < network.rates().constraint_count(); ++port) {
    times.push_back(time_of(static_cast<double>(packet.count()) * 8,
                            network.rates().capacity(ConstraintId(port))));
  }
  return times;
}

/// Port 2 l leaves the first node of link l, port 2 l + 1 the second.
std::vector<char> ports_of_switches(const Topology& topology) {
  std::vector<char> of_switch;
  for (const Link& link : topology.links) {
    for (const NodeId node : {link.a, link.b}) {
      of_switch.push_back(topology.nodes[node.index()].kind == NodeKind::kSwitch ? 1 : 0);
    }
  }
  return of_switch;
}

}  // namespace

MessageTransfers::MessageTransfers(const Topology& topology, PathFinder& paths,
                                   FluidNetwork& network, Bytes full_packet, std::uint64_t seed)
    : paths_(paths),
      network_(network),
      full_packet_(full_packet),
      seed_(seed),
      pairs_(paths, full_packet),
      queues_(ports_of_switches(topology)),
      shared_(queues_.size()),
      packet_times_(packet_times(network, full_packet)),
      senders_(queues_.size()),
      receivers_(queues_.size()),
      fabric_(network),
      last_wire_(paths.wire_bytes(Bytes())),
      earlier_(queues_.size()) {}

ConnectionId MessageTransfers::connect(NodeId source, NodeId destination, std::int32_t channel) {
  const ConnectionId id = pairs_.connect(source, destination, channel);
  note_shared(pairs_[pairs_.pair_of(id)].way.ports);
  return id;
}

std::int32_t MessageTransfers::new_message() {
  if (free_messages_.empty()) {
    messages_.emplace_back();
    queued_at_.emplace_back();
    return static_cast<std::int32_t>(messages_.size()) - 1;
  }
  const std::int32_t message = free_messages_.back();
  free_messages_.pop_back();
  return message;
}

void MessageTransfers::start(ConnectionId id, Bytes bytes, Time when, std::uint64_t tag) {
  LOCKSTEP_CHECK(when >= now_, "a message starts now or later");
  const std::int32_t index = new_message();
  Message& message = messages_[at(index)];
  message.tag = tag;
  if (bytes != last_bytes_) {
    last_bytes_ = bytes;
    last_wire_ = paths_.wire_bytes(bytes);
  }
  message.wire = last_wire_;
  message.pair = pairs_.pair_of(id);
  message.source_port = pairs_.next_port(id);
  if (when > now_) {
    starts_.push(when, index);
  } else {
    begin(index);
  }
}

void MessageTransfers::begin(std::int32_t index) {
  Message& message = messages_[at(index)];
  if (const Loads* known = known_alone(message)) {
    message.latency = known->latency;
    message.in_fabric = false;
    message.legs = 2;
    senders_.start(known->sender, index, known->at_sender, now_);
    receivers_.start(known->receiver, index, known->at_receiver, now_);
    return;
  }
  FreshPairs::Pair& pair = pairs_[message.pair];
  FreshPairs::Way* way = &pair.way;
  if (pair.draws) {
    way = &drawn_;
    way->lay(pairs_.path(pair, message.source_port));
    note_shared(way->ports);
  }
  message.latency = pairs_.latency(*way, message.wire);
  const std::int32_t sender = way->ports.front().constraint.value;
  const std::int32_t receiver = lone_receiver(pair);
  message.in_fabric = receiver < 0 && way->ports.size() > 1;
  message.legs = message.in_fabric || receiver >= 0 ? 2 : 1;
  Loads& load = loads(message.pair, message.wire, sender, receiver);
  load.latency = message.latency;
  load.shared_ports = shared_ports_;
  senders_.start(sender, index, load.at_sender, now_);
  if (receiver >= 0) {
    receivers_.start(receiver, index, load.at_receiver, now_);
  } else if (message.in_fabric) {
    begin_in_fabric(index, way->ports);
  }
}

/// What the last message of the pair was, if this one is the same and each leg of it is over one
/// port alone; else nothing.
const MessageTransfers::Loads* MessageTransfers::known_alone(const Message& message) const {
  if (at(message.pair) >= loads_.size()) {
    return nullptr;
  }
  const Loads& known = loads_[at(message.pair)];
  const bool same =
      known.wire == message.wire && known.receiver >= 0 && known.shared_ports == shared_ports_;
  return same ? &known : nullptr;
}

/// The second leg of a message, which has this way, over several ports.
void MessageTransfers::begin_in_fabric(std::int32_t index, std::span<const MaxMin::Term> ports) {
  std::vector<std::int32_t>& queued = queued_at_[at(index)];
  queued.clear();
  for (const MaxMin::Term& term : ports) {
    if (queues_[term.constraint.index()] != 0) {
      queued.push_back(term.constraint.value);
    }
  }
  const auto wire = static_cast<double>(messages_[at(index)].wire.count());
  const double packet = std::min(1.0, wire / static_cast<double>(full_packet_.count()));
  fabric_.start(index, ports.subspan(1), wire * 8, packet, now_);
}

MessageTransfers::Loads& MessageTransfers::loads(std::int32_t pair, Bytes wire, std::int32_t sender,
                                                 std::int32_t receiver) {
  if (at(pair) >= loads_.size()) {
    loads_.resize(at(pair) + 1);
  }
  Loads& known = loads_[at(pair)];
  if (known.wire != wire || known.sender != sender || known.receiver != receiver) {
    known = {wire, sender, receiver, load_on(sender, wire)};
    if (receiver >= 0) {
      known.at_receiver = load_on(receiver, wire);
    }
  }
  return known;
}

LegLoad MessageTransfers::load_on(std::int32_t port, Bytes wire) const {
  __extension__ using Product = __int128;
  const std::int64_t full = full_packet_.count();
  const std::int64_t packets = (wire.count() - 1) / full + 1;
  const std::int64_t last = wire.count() - (packets - 1) * full;
  const Time packet = packet_times_[at(port)];
  const Product ps = (static_cast<Product>(packet.count_ps()) * last + full - 1) / full;
  return {packets, packet, Time::ps(static_cast<std::int64_t>(ps))};
}

/// Second legs over several ports are limited by any of these.
void MessageTransfers::note_shared(const std::vector<MaxMin::Term>& ports) {
  for (std::size_t i = 1; ports.size() > 2 && i < ports.size(); ++i) {
    char& shared = shared_[ports[i].constraint.index()];
    shared_ports_ += shared == 0 ? 1 : 0;
    shared = 1;
  }
}

/// The port of a pair's second legs where nothing but such legs crosses it, so that they need no
/// system of rates; else -1.
std::int32_t MessageTransfers::lone_receiver(const FreshPairs::Pair& pair) const {
  if (pair.draws || pair.way.ports.size() != 2) {
    return -1;
  }
  const ConstraintId port = pair.way.ports.back().constraint;
  return queues_[port.index()] != 0 || shared_[port.index()] != 0 ? -1 : port.value;
}

/// What the last packet of a message that ends now waits at the ports of switches.
Time MessageTransfers::wait_of_last(std::int32_t index) const {
  const Message& message = messages_[at(index)];
  const FreshPairs::Pair& pair = pairs_[message.pair];
  double seconds = 0;
  for (const std::int32_t port : queued_at_[at(index)]) {
    const FabricLegs::Others others = fabric_.others(ConstraintId(port));
    if (others.share <= 0) {
      continue;
    }
    const double draw = uniform_of({seed_, static_cast<std::uint64_t>(pair.source.value),
                                    static_cast<std::uint64_t>(pair.destination.value),
                                    message.source_port, static_cast<std::uint64_t>(port)});
    if (draw < others.share) {
      seconds += draw / others.share * others.packet * packet_times_[at(port)].seconds();
    }
  }
  return Time::seconds(seconds);
}

void MessageTransfers::end_leg(std::int32_t index) {
  Message& message = messages_[at(index)];
  if (--message.legs > 0) {
    return;
  }
  const Time wait = message.in_fabric ? wait_of_last(index) : Time();
  deliveries_.push(now_ + message.latency + wait, message.tag);
  free_messages_.push_back(index);
}

/// All legs that end now.
void MessageTransfers::end_legs() {
  const auto end_at_port = [this](std::int32_t message, std::int32_t port) {
    earlier_[at(port)] += static_cast<double>(messages_[at(message)].wire.count()) * 8;
    end_leg(message);
  };
  if (senders_.next() == now_) {
    senders_.take_ended(now_, end_at_port);
  }
  if (receivers_.next() == now_) {
    receivers_.take_ended(now_, end_at_port);
  }
  fabric_.take_ended(now_, [this](std::int32_t message) { end_leg(message); });
}

Time MessageTransfers::advance(Time limit, std::vector<NetworkEvent>& events) {
  const std::size_t before = events.size();
  while (true) {
    throw_if_stopped();
    const Time legs = std::min({senders_.next(), receivers_.next(), fabric_.next(now_)});
    const Time next = std::min({legs, starts_.first(), deliveries_.first()});
    if (next > limit || next == Time::max()) {
      if (limit == Time::max()) {
        return now_;
      }
      now_ = std::max(now_, limit);
      return now_;
    }
    now_ = next;
    if (legs == now_) {
      end_legs();
    }
    while (deliveries_.first() == now_) {
      const std::uint64_t tag = deliveries_.pop();
      events.push_back({now_, tag, NetworkEvent::Kind::kSent});
      events.push_back({now_, tag, NetworkEvent::Kind::kDelivered});
    }
    while (starts_.first() == now_) {
      begin(starts_.pop());
    }
    if (events.size() > before) {
      return now_;
    }
  }
}

void MessageTransfers::set_capacity(ConstraintId port, double capacity) {
  const double factor = network_.rates().capacity(port) / capacity;
  fabric_.set_capacity(port, capacity, now_);
  packet_times_[port.index()] = time_of(static_cast<double>(full_packet_.count()) * 8, capacity);
  loads_.clear();
  senders_.stretch(port.value, factor, now_);
  receivers_.stretch(port.value, factor, now_);
}

void MessageTransfers::add_bits(std::vector<double>& bits) const {
  for (std::size_t port = 0; port < earlier_.size(); ++port) {
    bits[port] += earlier_[port];
  }
  fabric_.add_bits(now_, bits);
}

}  // namespace lockstep
