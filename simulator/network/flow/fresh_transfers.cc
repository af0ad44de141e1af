#include "simulator/network/flow/fresh_transfers.h"

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

FreshTransfers::FreshTransfers(const Topology& topology, PathFinder& paths, FluidNetwork& network,
                               const FlowOptions& options)
    : paths_(paths),
      network_(network),
      full_packet_(options.payload + options.header),
      seed_(options.seed),
      queues_(ports_of_switches(topology)),
      shared_(queues_.size()),
      packet_times_(packet_times(network, full_packet_)),
      senders_(packet_times_.size()),
      receivers_(packet_times_.size()),
      earlier_(network.rates().constraint_count()) {
  network_.deliver(false);
}

ConnectionId FreshTransfers::connect(NodeId source, NodeId destination, std::int32_t channel) {
  const std::int32_t pair = pair_of(source, destination, channel);
  const ConnectionId id(connections_.size());
  Connection& connection = connections_.emplace_back();
  connection.pair = pair;
  connection.source_port = draw(pairs_[at(pair)]);
  return id;
}

/// The next source port between two nodes.
std::uint16_t FreshTransfers::draw(const Pair& pair) {
  return static_cast<std::uint16_t>(PathFinder::kFirstPort + pairs_[at(pair.counter)].drawn++);
}

std::int32_t FreshTransfers::pair_of(NodeId source, NodeId destination, std::int32_t channel) {
  std::uint32_t& number = pair_number_(source, destination, channel);
  if (number == 0) {
    const Path& path = paths_.again(source, destination, channel, PathFinder::kFirstPort);
    Pair& pair = pairs_.emplace_back();
    pair.source = source;
    pair.destination = destination;
    pair.channel = channel;
    pair.draws = path.by_port;
    pair.way.ports = path.ports;
    pair.way.base = path.propagation + path.ack;
    pair.way.pipeline = path.pipeline;
    const std::int32_t last = path.ports.back().constraint.value;
    pair.receiver = path.ports.size() == 2 && !path.by_port && queues_[at(last)] == 0 ? last : -1;
    note_shared(path);
    number = static_cast<std::uint32_t>(pairs_.size());
    std::uint32_t& first = counter_(source, destination, 0);
    first = first == 0 ? number : first;
    pair.counter = static_cast<std::int32_t>(first - 1);
  }
  return static_cast<std::int32_t>(number - 1);
}

std::int32_t FreshTransfers::new_message() {
  if (free_messages_.empty()) {
    messages_.emplace_back();
    return static_cast<std::int32_t>(messages_.size()) - 1;
  }
  const std::int32_t message = free_messages_.back();
  free_messages_.pop_back();
  return message;
}

void FreshTransfers::start(ConnectionId id, Bytes bytes, Time when, std::uint64_t tag) {
  LOCKSTEP_CHECK(when >= now_, "a message starts now or later");
  Connection& connection = connections_[id.index()];
  if (connection.used) {
    connection.source_port = draw(pairs_[at(connection.pair)]);
  }
  connection.used = true;
  const std::int32_t index = new_message();
  Message& message = messages_[at(index)];
  message.tag = tag;
  message.bits = static_cast<double>(paths_.wire_bytes(bytes).count()) * 8;
  message.pair = connection.pair;
  message.source_port = connection.source_port;
  if (when > now_) {
    starts_.push(when, index);
  } else {
    begin(index);
  }
}

void FreshTransfers::begin(std::int32_t index) {
  Message& message = messages_[at(index)];
  Pair& pair = pairs_[at(message.pair)];
  Way* way = &pair.way;
  const std::int32_t receiver = lone_receiver(pair);
  const bool goes_on = receiver < 0 && pair.way.ports.size() > 1;  // as all ways of a pair do
  if (goes_on) {
    message.lane = lane_for(pair);
    if (pair.draws) {
      lay(message.lane,
          paths_.again(pair.source, pair.destination, pair.channel, message.source_port));
      way = &lanes_[at(message.lane)].way;
    }
  }
  measure(*way, Bytes(static_cast<std::int64_t>(message.bits / 8)));
  message.latency = way->latency;
  message.legs = goes_on || receiver >= 0 ? 2 : 1;
  senders_.start(way->ports.front().constraint.value, index, way->sent, now_);
  if (receiver >= 0) {
    receivers_.start(receiver, index, way->received, now_);
  } else if (goes_on) {
    network_.start(ConnectionId(message.lane), message.bits, Time(), now_,
                   static_cast<std::uint64_t>(index));
    network_next_ = now_;
  }
}

/// A lane that is free. Those of pairs that draw are to be laid anew.
std::int32_t FreshTransfers::lane_for(Pair& pair) {
  std::int32_t& free = pair.draws ? free_ : pair.free;
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
void FreshTransfers::note_shared(const Path& path) {
  for (std::size_t i = 1; path.ports.size() > 2 && i < path.ports.size(); ++i) {
    shared_[path.ports[i].constraint.index()] = 1;
  }
}

/// The port of a pair's second legs where nothing but such legs crosses it, so that they need no
/// system of rates; else -1.
std::int32_t FreshTransfers::lone_receiver(const Pair& pair) const {
  return pair.receiver >= 0 && shared_[at(pair.receiver)] == 0 ? pair.receiver : -1;
}

/// From now on a lane goes this way.
void FreshTransfers::lay(std::int32_t id, const Path& path) {
  note_shared(path);
  Way& way = lanes_[at(id)].way;
  const double bits = network_.take_carried_bits(ConnectionId(id));
  for (std::size_t i = 1; i < way.ports.size(); ++i) {
    earlier_[way.ports[i].constraint.index()] += bits;
  }
  way.ports = path.ports;
  way.base = path.propagation + path.ack;
  way.pipeline = path.pipeline;
  way.wire = Bytes(-1);
  network_.reroute(ConnectionId(id), std::span(way.ports).subspan(1));
}

PortLoad FreshTransfers::load_on(ConstraintId port, Bytes wire) const {
  const std::int64_t packets = (wire.count() - 1) / full_packet_.count() + 1;
  const Bytes last = wire - full_packet_ * (packets - 1);
  return {packets, packet_times_[port.index()],
          time_of(static_cast<double>(last.count()) * 8, network_.rates().capacity(port))};
}

/// What a message of so many bytes takes.
void FreshTransfers::measure(Way& way, Bytes wire) const {
  if (wire != way.wire) {
    way.wire = wire;
    way.latency =
        way.base + (wire < full_packet_ ? paths_.pipeline(way.ports, wire) : way.pipeline);
    way.sent = load_on(way.ports.front().constraint, wire);
    way.received = load_on(way.ports.back().constraint, wire);
  }
}

const FreshTransfers::Way& FreshTransfers::way_of(const Message& message) const {
  const Pair& pair = pairs_[at(message.pair)];
  return pair.draws && message.lane >= 0 ? lanes_[at(message.lane)].way : pair.way;
}

/// What the last packet of a message that ends now waits at the ports of switches.
Time FreshTransfers::wait_of_last(const Message& message) const {
  const MaxMin& rates = network_.rates();
  double seconds = 0;
  for (const MaxMin::Term& term : way_of(message).ports) {
    const ConstraintId port = term.constraint;
    if (queues_[port.index()] == 0) {
      continue;
    }
    double used = 0;
    for (const MaxMin::User& user : rates.users(port)) {
      used += user.variable == message.lane ? 0 : rates.rate(VariableId(user.variable));
    }
    const double others = used / rates.capacity(port);
    if (others <= 0) {
      continue;
    }
    const Pair& pair = pairs_[at(message.pair)];
    const double draw = uniform_of({seed_, static_cast<std::uint64_t>(pair.source.value),
                                    static_cast<std::uint64_t>(pair.destination.value),
                                    message.source_port, static_cast<std::uint64_t>(port.value)});
    if (draw < others) {
      seconds +=
          draw / others * static_cast<double>(full_packet_.count()) * 8 / rates.capacity(port);
    }
  }
  return Time::seconds(seconds);
}

void FreshTransfers::end_leg(std::int32_t index) {
  Message& message = messages_[at(index)];
  if (--message.legs > 0) {
    return;
  }
  const Time wait = message.lane < 0 ? Time() : wait_of_last(message);
  deliveries_.push(now_ + message.latency + wait, message.tag);
  if (message.lane >= 0) {
    Pair& pair = pairs_[at(message.pair)];
    std::int32_t& free = pair.draws ? free_ : pair.free;
    lanes_[at(message.lane)].next = free;
    free = message.lane;
    message.lane = -1;
  }
  free_messages_.push_back(index);
}

/// All legs that end now.
void FreshTransfers::end_legs(std::vector<NetworkEvent>& events) {
  senders_.take_ended(now_, sent_);
  for (const auto& [transfer, port] : sent_) {
    const Message& message = messages_[at(transfer)];
    earlier_[at(port)] += message.bits;
    events.push_back({now_, message.tag, NetworkEvent::Kind::kSent});
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

Time FreshTransfers::advance(Time limit, std::vector<NetworkEvent>& events) {
  const std::size_t before = events.size();
  while (true) {
    throw_if_stopped();
    Time next = std::min({senders_.next(), receivers_.next(), network_next_});
    next = starts_.empty() ? next : std::min(next, starts_.first());
    next = deliveries_.empty() ? next : std::min(next, deliveries_.first());
    if (next > limit || next == Time::max()) {
      now_ = limit < Time::max() ? std::max(now_, limit) : now_;
      return now_;
    }
    now_ = next;
    end_legs(events);
    if (!deliveries_.empty() && deliveries_.first() == now_) {
      deliveries_.pop(delivered_);
      for (const std::uint64_t tag : delivered_) {
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

void FreshTransfers::set_capacity(ConstraintId port, double capacity) {
  std::vector<NetworkEvent> none;
  network_.advance(now_, none);
  LOCKSTEP_CHECK(none.empty(), "what happens now has happened");
  const double factor = network_.rates().capacity(port) / capacity;
  network_.set_capacity(port, capacity);
  network_next_ = network_.next_change();
  packet_times_[port.index()] = time_of(static_cast<double>(full_packet_.count()) * 8, capacity);
  senders_.stretch(port.value, factor, now_);
  receivers_.stretch(port.value, factor, now_);
  for (Pair& pair : pairs_) {
    pair.way.wire = Bytes(-1);  // to be measured anew
  }
  for (Lane& lane : lanes_) {
    lane.way.wire = Bytes(-1);
  }
}

void FreshTransfers::add_bits(std::vector<double>& bits) const {
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
