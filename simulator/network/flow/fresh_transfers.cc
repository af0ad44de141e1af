#include "simulator/network/flow/fresh_transfers.h"

#include "base/error.h"

namespace lockstep {

FreshTransfers::FreshTransfers(PathFinder& paths, FluidNetwork& network, Bytes full_packet)
    : paths_(paths),
      network_(network),
      full_packet_(full_packet),
      earlier_(network.rates().constraint_count()) {
  network_.tell_emptied(true);
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
    number = static_cast<std::uint32_t>(pairs_.size());
    std::uint32_t& first = counter_(source, destination, 0);
    first = first == 0 ? number : first;
    pair.counter = static_cast<std::int32_t>(first - 1);
  }
  return static_cast<std::int32_t>(number - 1);
}

void FreshTransfers::start(ConnectionId id, Bytes bytes, Time when, std::uint64_t tag) {
  Connection& connection = connections_[id.index()];
  Pair& pair = pairs_[at(connection.pair)];
  const bool is_new = connection.lane < 0 || lanes_[at(connection.lane)].connection != id.value;
  if (is_new) {
    connection.lane = lane_for(pair);
    lanes_[at(connection.lane)].connection = id.value;
    lanes_[at(connection.lane)].pair = connection.pair;
  }
  if (pair.draws && (is_new || connection.used)) {
    if (connection.used) {
      connection.source_port = draw(pair);
    }
    lay(connection.lane,
        paths_.again(pair.source, pair.destination, pair.channel, connection.source_port));
  }
  connection.used = true;
  const Bytes wire = paths_.wire_bytes(bytes);
  network_.start(ConnectionId(connection.lane), static_cast<double>(wire.count()) * 8,
                 latency(pair.draws ? lanes_[at(connection.lane)].way : pair.way, wire), when, tag);
}

/// A lane that is free. Those of pairs that draw are laid anew.
std::int32_t FreshTransfers::lane_for(Pair& pair) {
  std::int32_t& free = pair.draws ? free_ : pair.free;
  if (free >= 0) {
    const std::int32_t lane = free;
    free = lanes_[at(lane)].next;
    return lane;
  }
  const std::int32_t lane = network_.connect(pair.way.ports).value;
  LOCKSTEP_CHECK(at(lane) == lanes_.size(), "one lane for one");
  lanes_.emplace_back();
  return lane;
}

/// From now on a lane goes this way; flows that are leaving stay on their own.
void FreshTransfers::lay(std::int32_t id, const Path& path) {
  Way& way = lanes_[at(id)].way;
  const double bits = network_.take_carried_bits(ConnectionId(id));
  for (const MaxMin::Term& port : way.ports) {
    earlier_[port.constraint.index()] += bits;
  }
  way.ports = path.ports;
  way.base = path.propagation + path.ack;
  way.pipeline = path.pipeline;
  way.wire = Bytes(-1);
  network_.reroute(ConnectionId(id), way.ports);
}

Time FreshTransfers::latency(Way& way, Bytes wire) const {
  if (wire != way.wire) {
    way.wire = wire;
    way.latency =
        way.base + (wire < full_packet_ ? paths_.pipeline(way.ports, wire) : way.pipeline);
  }
  return way.latency;
}

void FreshTransfers::recall() {
  for (const std::int32_t id : network_.emptied()) {
    Lane& lane = lanes_[at(id)];
    lane.connection = -1;
    Pair& pair = pairs_[at(lane.pair)];
    std::int32_t& free = pair.draws ? free_ : pair.free;
    lane.next = free;
    free = id;
  }
  network_.emptied().clear();
}

const FreshTransfers::Way& FreshTransfers::way_of(const Lane& lane) const {
  const Pair& pair = pairs_[at(lane.pair)];
  return pair.draws ? lane.way : pair.way;
}

void FreshTransfers::add_bits(std::vector<double>& bits) const {
  for (std::size_t port = 0; port < earlier_.size(); ++port) {
    bits[port] += earlier_[port];
  }
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const double carried = network_.carried_bits(ConnectionId(i));
    for (const MaxMin::Term& port : way_of(lanes_[i]).ports) {
      bits[port.constraint.index()] += carried;
    }
  }
}

}  // namespace lockstep
