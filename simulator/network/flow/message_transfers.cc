#include "simulator/network/flow/message_transfers.h"

#include <algorithm>

#include "base/error.h"
#include "base/rng.h"
#include "base/stop_signal.h"
#include "simulator/network/flow/give_back.h"

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
      earlier_(queues_.size()) {
  network_.deliver(false);
}

ConnectionId MessageTransfers::connect(NodeId source, NodeId destination, std::int32_t channel) {
  const ConnectionId id = pairs_.connect(source, destination, channel);
  note_shared(pairs_[pairs_.pair_of(id)].way.ports);
  return id;
}

std::int32_t MessageTransfers::new_message() {
  if (free_messages_.empty()) {
    messages_.emplace_back();
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
  message.bits = static_cast<double>(paths_.wire_bytes(bytes).count()) * 8;
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
  FreshPairs::Pair& pair = pairs_[message.pair];
  FreshPairs::Way* way = &pair.way;
  const std::int32_t receiver = lone_receiver(pair);
  const bool goes_on = receiver < 0 && pair.way.ports.size() > 1;  // as all ways of a pair do
  if (goes_on) {
    message.lane = lane_for(pair);
    if (pair.draws) {
      lay(message.lane, pairs_.path(pair, message.source_port));
      way = &lanes_[at(message.lane)].way;
    }
  }
  const auto wire = Bytes(static_cast<std::int64_t>(message.bits / 8));
  if (goes_on) {
    lanes_[at(message.lane)].packet = std::min(
        1.0, static_cast<double>(wire.count()) / static_cast<double>(full_packet_.count()));
  }
  message.latency = pairs_.latency(*way, wire);
  message.legs = goes_on || receiver >= 0 ? 2 : 1;
  const ConstraintId port = way->ports.front().constraint;
  senders_.start(port.value, index, load_on(port, wire), now_);
  if (receiver >= 0) {
    receivers_.start(receiver, index, load_on(ConstraintId(receiver), wire), now_);
  } else if (goes_on) {
    network_.start(ConnectionId(message.lane), message.bits, Time(), now_,
                   static_cast<std::uint64_t>(index));
    network_next_ = now_;
  }
}

LegLoad MessageTransfers::load_on(ConstraintId port, Bytes wire) const {
  __extension__ using Wide = __int128;
  const std::int64_t full = full_packet_.count();
  const std::int64_t packets = (wire.count() - 1) / full + 1;
  const std::int64_t last = wire.count() - (packets - 1) * full;
  const Time packet = packet_times_[port.index()];
  const Wide ps = (static_cast<Wide>(packet.count_ps()) * last + full - 1) / full;
  return {packets, packet, Time::ps(static_cast<std::int64_t>(ps))};
}

/// A lane that is free. Those of pairs that draw are to be laid anew.
std::int32_t MessageTransfers::lane_for(FreshPairs::Pair& pair) {
  std::int32_t& free = pairs_.free_lane(pair);
  if (free >= 0) {
    const std::int32_t lane = free;
    free = lanes_[at(lane)].next;
    return lane;
  }
  const std::int32_t lane = network_.connect(std::span(pair.way.ports).subspan(1)).value;
  LOCKSTEP_CHECK(at(lane) == lanes_.size(), "one lane for one");
  lanes_.emplace_back();
  return lane;
}

/// Second legs over several ports are limited by any of these.
void MessageTransfers::note_shared(const std::vector<MaxMin::Term>& ports) {
  for (std::size_t i = 1; ports.size() > 2 && i < ports.size(); ++i) {
    shared_[ports[i].constraint.index()] = 1;
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

/// From now on a lane goes this way.
void MessageTransfers::lay(std::int32_t id, const Path& path) {
  FreshPairs::Way& way = lanes_[at(id)].way;
  const double bits = network_.take_carried_bits(ConnectionId(id));
  for (std::size_t i = 1; i < way.ports.size(); ++i) {
    earlier_[way.ports[i].constraint.index()] += bits;
  }
  way.lay(path);
  note_shared(way.ports);
  network_.reroute(ConnectionId(id), std::span(way.ports).subspan(1));
}

/// What the last packet of a message that ends now waits at the ports of switches.
Time MessageTransfers::wait_of_last(const Message& message) const {
  const FreshPairs::Pair& pair = pairs_[message.pair];
  const MaxMin& rates = network_.rates();
  double seconds = 0;
  for (const MaxMin::Term& term : (pair.draws ? lanes_[at(message.lane)].way : pair.way).ports) {
    const ConstraintId port = term.constraint;
    if (queues_[port.index()] == 0) {
      continue;
    }
    double used = 0, packets = 0;  // packets: the same, each by how long its packets are
    for (const MaxMin::User& user : rates.users(port)) {
      const double rate = user.variable == message.lane ? 0 : rates.rate(VariableId(user.variable));
      used += rate;
      packets += rate * lanes_[at(user.variable)].packet;
    }
    const double others = used / rates.capacity(port);
    if (others <= 0) {
      continue;
    }
    const double draw = uniform_of({seed_, static_cast<std::uint64_t>(pair.source.value),
                                    static_cast<std::uint64_t>(pair.destination.value),
                                    message.source_port, static_cast<std::uint64_t>(port.value)});
    if (draw < others) {
      seconds += draw / others * (packets / used) * packet_times_[port.index()].seconds();
    }
  }
  return Time::seconds(seconds);
}

void MessageTransfers::end_leg(std::int32_t index) {
  Message& message = messages_[at(index)];
  if (--message.legs > 0) {
    return;
  }
  const Time wait = message.lane < 0 ? Time() : wait_of_last(message);
  deliveries_.push(now_ + message.latency + wait, message.tag);
  if (message.lane >= 0) {
    std::int32_t& free = pairs_.free_lane(pairs_[message.pair]);
    lanes_[at(message.lane)].next = free;
    free = message.lane;
    message.lane = -1;
  }
  free_messages_.push_back(index);
}

/// All legs that end now.
void MessageTransfers::end_legs() {
  senders_.take_ended(now_, sent_);
  for (const auto& [transfer, port] : sent_) {
    earlier_[at(port)] += messages_[at(transfer)].bits;
    end_leg(transfer);
  }
  give_back(sent_);
  receivers_.take_ended(now_, received_);
  for (const auto& [transfer, port] : received_) {
    earlier_[at(port)] += messages_[at(transfer)].bits;
    end_leg(transfer);
  }
  give_back(received_);
  while (network_next_ <= now_) {
    network_.advance(now_, heard_);
    for (const NetworkEvent& event : heard_) {
      end_leg(static_cast<std::int32_t>(event.tag));
    }
    give_back(heard_);
    network_next_ = network_.next_change();
  }
}

Time MessageTransfers::advance(Time limit, std::vector<NetworkEvent>& events) {
  const std::size_t before = events.size();
  while (true) {
    throw_if_stopped();
    Time next = std::min({senders_.next(), receivers_.next(), network_next_});
    next = starts_.empty() ? next : std::min(next, starts_.first());
    next = deliveries_.empty() ? next : std::min(next, deliveries_.first());
    if (next > limit || next == Time::max()) {
      if (limit == Time::max()) {
        network_.advance(limit, heard_);  // tells of what would end after the clock
        return now_;
      }
      now_ = std::max(now_, limit);
      return now_;
    }
    now_ = next;
    end_legs();
    if (!deliveries_.empty() && deliveries_.first() == now_) {
      deliveries_.pop(delivered_);
      for (const std::uint64_t tag : delivered_) {
        events.push_back({now_, tag, NetworkEvent::Kind::kSent});
        events.push_back({now_, tag, NetworkEvent::Kind::kDelivered});
      }
      give_back(delivered_);
    }
    if (!starts_.empty() && starts_.first() == now_) {
      starts_.pop(starting_);
      for (const std::int32_t message : starting_) {
        begin(message);
      }
      give_back(starting_);
    }
    if (events.size() > before) {
      return now_;
    }
  }
}

void MessageTransfers::set_capacity(ConstraintId port, double capacity) {
  network_.advance(now_, heard_);
  LOCKSTEP_CHECK(heard_.empty(), "what happens now has happened");
  const double factor = network_.rates().capacity(port) / capacity;
  network_.set_capacity(port, capacity);
  network_next_ = network_.next_change();
  packet_times_[port.index()] = time_of(static_cast<double>(full_packet_.count()) * 8, capacity);
  senders_.stretch(port.value, factor, now_);
  receivers_.stretch(port.value, factor, now_);
}

void MessageTransfers::add_bits(std::vector<double>& bits) const {
  for (std::size_t port = 0; port < earlier_.size(); ++port) {
    bits[port] += earlier_[port];
  }
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const double carried = network_.carried_bits(ConnectionId(i));
    for (const MaxMin::Element& element : network_.rates().elements(VariableId(i))) {
      bits[static_cast<std::size_t>(element.constraint)] += carried;
    }
  }
}

}  // namespace lockstep
