#include "simulator/network/flow/flow_engine.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace lockstep {

namespace {

/// A port without bandwidth carries nothing: PathFinder refuses routes over it.
std::vector<double> capacities(const Topology& topology, const PathFinder& paths) {
  std::vector<double> capacity(2 * topology.links.size());
  for (std::size_t port = 0; port < capacity.size(); ++port) {
    const double nominal = paths.capacity(PortId(port));
    capacity[port] = nominal > 0 ? nominal : 1;
  }
  return capacity;
}

}  // namespace

FlowEngine::FlowEngine(const Topology& topology, const FlowOptions& options)
    : paths_(topology, options),
      fresh_ports_(options.fresh_ports),
      full_packet_(options.payload + options.header),
      ports_(capacities(topology, paths_)),
      spared_(2 * topology.links.size()),
      earlier_bits_(2 * topology.links.size()),
      has_windows_(options.transport.has_value()) {
  if (options.transport && options.transport->has_law()) {
    law_ = std::make_unique<CongestionLaw>(topology, options);
    network_.set_law(law_.get());
  }
  for (std::size_t port = 0; port < spared_.size(); ++port) {
    network_.add_constraint(ports_.capacity(port));
  }
}

ConnectionId FlowEngine::connect(NodeId source, NodeId destination, std::int32_t channel) {
  const Path& path = paths_.next(source, destination, channel);
  const auto id = static_cast<std::int32_t>(connections_.size());
  connections_.push_back({source, destination, channel});
  lay_path(id, path);
  const ConnectionId connection = network_.connect(terms_);
  LOCKSTEP_CHECK(connection.value == id, "one connection for one");
  return connection;
}

/// Notes a connection's path; leaves the terms that bind in terms_.
void FlowEngine::lay_path(std::int32_t id, const Path& path) {
  Connection& connection = connections_[static_cast<std::size_t>(id)];
  connection.base = path.propagation + path.ack;
  connection.pipeline = path.pipeline;
  connection.wire = Bytes(-1);
  if (has_windows_) {
    windows_.resize(connections_.size());
    windows_[static_cast<std::size_t>(id)] = path.window;
  }
  if (law_) {
    law_->connect(ConnectionId(id), path);
  }
  const auto count = static_cast<std::int32_t>(path.ports.size());
  if (count > connection.hops) {
    connection.first_hop = static_cast<std::int32_t>(hops_.size());
    hops_.resize(hops_.size() + path.ports.size());
  }
  connection.hops = count;
  terms_.clear();
  for (std::size_t i = 0; i < path.ports.size(); ++i) {
    const MaxMin::Term& term = path.ports[i];
    hops_[static_cast<std::size_t>(connection.first_hop) + i] = {term.constraint.value,
                                                                 term.coefficient};
    if (binds(path, i, id)) {
      terms_.push_back(term);
    }
  }
}

/// Whether the port of this hop counts for the new connection. Where the connection makes it
/// count, those that came before get their term.
bool FlowEngine::binds(const Path& path, std::size_t hop, std::int32_t connection) {
  const ConstraintId port = path.ports[hop].constraint;
  const bool did = ports_.binds(port.index());
  if (fresh_ports_ && !did) {
    ports_.bind(port.index());  // the next transfer may come another way
  }
  if (!ports_.cross(path.ports, hop)) {
    spared_[port.index()].push_back(connection);
    return false;
  }
  if (!did) {
    bind(port);
  }
  return true;
}

void FlowEngine::bind(ConstraintId port) {
  for (const std::int32_t connection : spared_[port.index()]) {
    network_.add_term(ConnectionId(connection), {port, 1});
  }
  spared_[port.index()] = {};
}

void FlowEngine::start(ConnectionId id, Bytes bytes, Time when, std::uint64_t tag) {
  Connection& connection = connections_[id.index()];
  if (fresh_ports_ && connection.used) {
    const double bits = network_.take_carried_bits(id);
    for (const UsedPort& hop : hops_of(connection)) {
      earlier_bits_[static_cast<std::size_t>(hop.port)] += bits * hop.share;
    }
    lay_path(id.value, paths_.next(connection.source, connection.destination, connection.channel));
    network_.reroute(id, terms_);
  }
  connection.used = true;
  const Bytes wire = paths_.wire_bytes(bytes);
  if (wire != connection.wire) {
    connection.wire = wire;
    connection.latency = latency(connection, wire);
    if (has_windows_) {
      network_.set_limit(id, paths_.limit(windows_[id.index()], bytes));
    }
  }
  network_.start(id, static_cast<double>(wire.count()) * 8, connection.latency, when, tag);
}

Time FlowEngine::latency(const Connection& connection, Bytes wire) {
  if (wire >= full_packet_) {
    return connection.base + connection.pipeline;
  }
  terms_.clear();
  for (const UsedPort& hop : hops_of(connection)) {
    terms_.push_back({ConstraintId(hop.port), hop.share});
  }
  return connection.base + paths_.pipeline(terms_, wire);
}

std::span<const FlowEngine::UsedPort> FlowEngine::hops_of(const Connection& connection) const {
  return std::span(hops_).subspan(static_cast<std::size_t>(connection.first_hop),
                                  static_cast<std::size_t>(connection.hops));
}

void FlowEngine::set_capacity(PortId port, double bits_per_second) {
  network_.set_capacity(ConstraintId(port.value), bits_per_second);
  for (const std::int32_t other : ports_.set_capacity(port.index(), bits_per_second)) {
    bind(ConstraintId(other));
  }
}

std::vector<PortUse> FlowEngine::port_use() const {
  std::vector<double> bits = earlier_bits_;
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    const double carried = network_.carried_bits(ConnectionId(i));
    for (const UsedPort& hop : hops_of(connections_[i])) {
      bits[static_cast<std::size_t>(hop.port)] += carried * hop.share;
    }
  }
  std::vector<PortUse> use(bits.size());
  for (std::size_t port = 0; port < use.size(); ++port) {
    use[port].bytes = Bytes(std::llround(bits[port] / 8));
    use[port].busy = Time::seconds(bits[port] / ports_.capacity(port));
  }
  return use;
}

}  // namespace lockstep
