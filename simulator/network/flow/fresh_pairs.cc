#include "simulator/network/flow/fresh_pairs.h"

namespace lockstep {

void FreshPairs::Way::lay(const Path& path) {
  ports = path.ports;
  base = path.propagation + path.ack;
  pipeline = path.pipeline;
  wire = Bytes(-1);
}

ConnectionId FreshPairs::connect(NodeId source, NodeId destination, std::int32_t channel) {
  const std::int32_t pair = number_of(source, destination, channel);
  const ConnectionId id(connections_.size());
  Connection& connection = connections_.emplace_back();
  connection.pair = pair;
  connection.source_port = draw(pairs_[at(pair)]);
  return id;
}

std::uint16_t FreshPairs::next_port(ConnectionId id) {
  Connection& connection = connections_[id.index()];
  const Pair& pair = pairs_[at(connection.pair)];
  if (connection.used && connection.drawn > 0) {
    --connection.drawn;
    connection.source_port = static_cast<std::uint16_t>(connection.source_port + connection.turn);
  } else if (connection.used && pair.draws) {
    connection.source_port = draw(pair);
  }
  connection.used = true;
  return connection.source_port;
}

/// Those that have not been used keep the port that they have for their first transfer.
void FreshPairs::draw_ports(std::span<const ConnectionId> connections, std::int32_t transfers) {
  for (const ConnectionId id : connections) {
    Connection& connection = connections_[id.index()];
    Pair& counter = pairs_[at(pairs_[at(connection.pair)].counter)];
    if (connection.used) {  // so that the next one is the first of its turn
      connection.source_port =
          static_cast<std::uint16_t>(PathFinder::kFirstPort + counter.drawn + counter.turn);
    }
    ++counter.turn;
  }
  for (const ConnectionId id : connections) {
    Connection& connection = connections_[id.index()];
    const Pair& counter = pairs_[at(pairs_[at(connection.pair)].counter)];
    connection.turn = counter.turn;
    connection.drawn = transfers - (connection.used ? 0 : 1);
    if (connection.used) {
      connection.source_port = static_cast<std::uint16_t>(connection.source_port - counter.turn);
    }
  }
  for (const ConnectionId id : connections) {
    const Connection& connection = connections_[id.index()];
    Pair& counter = pairs_[at(pairs_[at(connection.pair)].counter)];
    counter.drawn = static_cast<std::uint16_t>(counter.drawn + connection.drawn);
    counter.turn = 0;
  }
}

/// The next source port between two nodes.
std::uint16_t FreshPairs::draw(const Pair& pair) {
  return static_cast<std::uint16_t>(PathFinder::kFirstPort + pairs_[at(pair.counter)].drawn++);
}

std::int32_t FreshPairs::number_of(NodeId source, NodeId destination, std::int32_t channel) {
  std::uint32_t& number = pair_number_(source, destination, channel);
  if (number == 0) {
    const Path& path = paths_.again(source, destination, channel, PathFinder::kFirstPort);
    Pair& pair = pairs_.emplace_back();
    pair.source = source;
    pair.destination = destination;
    pair.channel = channel;
    pair.draws = path.by_port;
    pair.way.lay(path);
    number = static_cast<std::uint32_t>(pairs_.size());
    std::uint32_t& first = counter_(source, destination, 0);
    first = first == 0 ? number : first;
    pair.counter = static_cast<std::int32_t>(first - 1);
  }
  return static_cast<std::int32_t>(number - 1);
}

Time FreshPairs::latency(Way& way, Bytes wire) const {
  if (wire != way.wire) {
    way.wire = wire;
    way.latency =
        way.base + (wire < full_packet_ ? paths_.pipeline(way.ports, wire) : way.pipeline);
  }
  return way.latency;
}

}  // namespace lockstep
