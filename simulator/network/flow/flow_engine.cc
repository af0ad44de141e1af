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
    : topology_(topology),
      paths_(topology, options),
      seed_(options.seed),
      fresh_ports_(options.fresh_ports),
      moves_(options.fresh_ports),
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
  if (fresh_ports_ && !options.routes.spray && !options.transport) {
    fresh_ = std::make_unique<FreshTransfers>(paths_, network_, full_packet_);
  }
  for (const LinkFault& fault : options.faults) {
    add_fault(fault);
  }
}

ConnectionId FlowEngine::connect(NodeId source, NodeId destination, std::int32_t channel) {
  if (messages_) {
    return messages_->connect(source, destination, channel);
  }
  if (fresh_) {
    return fresh_->connect(source, destination, channel);
  }
  const Path& path = paths_.next(source, destination, channel);
  const auto id = static_cast<std::int32_t>(connections_.size());
  connections_.push_back({source, destination, channel});
  lay_path(id, path);
  const ConnectionId connection = network_.connect(terms_);
  LOCKSTEP_CHECK(connection.value == id, "one connection for one");
  keep_if_broken(id);
  return connection;
}

/// Notes a connection's path; leaves the terms that bind in terms_.
void FlowEngine::lay_path(std::int32_t id, const Path& path) {
  Connection& connection = connections_[static_cast<std::size_t>(id)];
  connection.base = path.propagation + path.ack;
  connection.pipeline = path.pipeline;
  connection.source_port = path.source_port;
  connection.draws = fresh_ports_ && (path.by_port || faults_ != nullptr);
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
  if (moves_ && !did) {
    ports_.bind(port.index());  // what follows may come another way
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
  if (messages_) {
    messages_->start(id, bytes, when, tag);
    return;
  }
  if (fresh_) {
    fresh_->start(id, bytes, when, tag);
    return;
  }
  Connection& connection = connections_[id.index()];
  if (connection.draws && connection.used) {
    const double bits = network_.take_carried_bits(id);
    for (const UsedPort& hop : hops_of(connection)) {
      earlier_bits_[static_cast<std::size_t>(hop.port)] += bits * hop.share;
    }
    lay_path(id.value, paths_.next(connection.source, connection.destination, connection.channel));
    network_.reroute(id, terms_);
    keep_if_broken(id.value);
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

Time FlowEngine::advance(Time limit, std::vector<NetworkEvent>& events) {
  if (messages_) {
    return messages_->advance(limit, events);
  }
  const std::size_t before = events.size();
  while (faults_ && faults_->next() <= limit && faults_->next() < Time::max() &&
         !(limit == Time::max() && network_.idle())) {
    network_.advance(faults_->next(), events);
    if (events.size() > before) {
      return network_.now();
    }
    change_links();
  }
  network_.advance(limit, events);
  if (fresh_) {
    fresh_->recall();
  }
  return network_.now();
}

void FlowEngine::meet_by_packets() {
  if (fresh_) {
    LOCKSTEP_CHECK(fresh_->connections() == 0, "the law is chosen before connections are made");
    fresh_.reset();
    messages_ =
        std::make_unique<MessageTransfers>(topology_, paths_, network_, full_packet_, seed_);
  }
}

void FlowEngine::add_fault(const LinkFault& fault) {
  LOCKSTEP_CHECK(connections_.empty() && (!fresh_ || fresh_->connections() == 0) &&
                     (!messages_ || messages_->connections() == 0),
                 "faults are known before connections are made");
  fresh_.reset();
  messages_.reset();
  if (!faults_) {
    faults_ = std::make_unique<LinkFaults>(spared_.size() / 2);
    moves_ = true;
  }
  faults_->add(fault, now());
}

/// What becomes of links at this moment, after all else that happens at it.
void FlowEngine::change_links() {
  if (faults_->step()) {
    paths_.avoid(faults_->avoided());
    find_ways();
  }
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    keep_if_broken(static_cast<std::int32_t>(i));
  }
}

/// The ways that all connections take from now on.
void FlowEngine::find_ways() {
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    const Connection& connection = connections_[i];
    const Path& path = paths_.again(connection.source, connection.destination, connection.channel,
                                    connection.source_port);
    const bool same =
        std::ranges::equal(path.ports, hops_of(connection), [](const auto& a, const auto& b) {
          return a.constraint.value == b.port && a.coefficient == b.share;
        });
    if (!same) {
      move(static_cast<std::int32_t>(i), path);
    }
  }
}

/// What a connection has carried stays on its old ports.
void FlowEngine::move(std::int32_t index, const Path& path) {
  const ConnectionId id(index);
  const Connection& connection = connections_[id.index()];
  const double all = network_.carried_bits(id);
  const double under_way = all - network_.take_carried_bits(id);
  for (const UsedPort& hop : hops_of(connection)) {
    earlier_bits_[static_cast<std::size_t>(hop.port)] += all * hop.share;
  }
  network_.hold(id);
  lay_path(index, path);
  network_.reroute(id, terms_);
  for (const UsedPort& hop : hops_of(connection)) {
    earlier_bits_[static_cast<std::size_t>(hop.port)] -= under_way * hop.share;
  }
  network_.set_latencies(
      id, [&](double bits) { return latency(connection, Bytes(std::llround(bits / 8))); });
  network_.let_go(id);
}

LinkId FlowEngine::broken(const Connection& connection) const {
  for (const UsedPort& hop : hops_of(connection)) {
    if (faults_->is_down(LinkId(hop.port / 2))) {
      return LinkId(hop.port / 2);
    }
  }
  return LinkId();
}

void FlowEngine::keep_if_broken(std::int32_t index) {
  if (!faults_) {
    return;
  }
  if (broken(connections_[static_cast<std::size_t>(index)]).valid()) {
    network_.hold(ConnectionId(index));
  } else {
    network_.let_go(ConnectionId(index));
  }
}

std::vector<StuckTransfer> FlowEngine::stuck() const {
  std::vector<StuckTransfer> list;
  for (std::size_t i = 0; faults_ && i < connections_.size(); ++i) {
    if (network_.is_stuck(ConnectionId(i))) {
      const LinkId link = broken(connections_[i]);
      list.push_back({network_.tag(ConnectionId(i)), link, faults_->down_since(link)});
    }
  }
  return list;
}

/// What a port has carried took it so long at its capacity until now. O(hops of all connections),
/// once for all ports that change at a moment.
void FlowEngine::note_busy(std::size_t port) {
  if (changed_.empty()) {
    changed_.resize(earlier_bits_.size());
  }
  if (bits_at_ != now()) {
    bits_at_ = now();
    bits_by_now_ = bits();
  }
  Changed& changed = changed_[port];
  changed.busy += Time::seconds((bits_by_now_[port] - changed.bits) / ports_.capacity(port));
  changed.bits = bits_by_now_[port];
}

void FlowEngine::set_capacity(PortId port, double bits_per_second) {
  note_busy(port.index());
  if (messages_) {
    messages_->set_capacity(ConstraintId(port.value), bits_per_second);
  } else {
    network_.set_capacity(ConstraintId(port.value), bits_per_second);
  }
  for (const std::int32_t other : ports_.set_capacity(port.index(), bits_per_second)) {
    bind(ConstraintId(other));
  }
}

/// What each port has carried.
std::vector<double> FlowEngine::bits() const {
  std::vector<double> bits = earlier_bits_;
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    const double carried = network_.carried_bits(ConnectionId(i));
    for (const UsedPort& hop : hops_of(connections_[i])) {
      bits[static_cast<std::size_t>(hop.port)] += carried * hop.share;
    }
  }
  if (fresh_) {
    fresh_->add_bits(bits);
  }
  if (messages_) {
    messages_->add_bits(bits);
  }
  return bits;
}

std::vector<PortUse> FlowEngine::port_use() const {
  const std::vector<double> bits = this->bits();
  std::vector<PortUse> use(bits.size());
  for (std::size_t port = 0; port < use.size(); ++port) {
    const Changed changed = changed_.empty() ? Changed{} : changed_[port];
    use[port].bytes = Bytes(std::llround(bits[port] / 8));
    const Time busy =
        changed.busy + Time::seconds((bits[port] - changed.bits) / ports_.capacity(port));
    // Of a message whose first leg is under way when a port changes, nothing counts as sent before.
    use[port].busy = changed_.empty() ? busy : std::min(busy, now());
  }
  return use;
}

}  // namespace lockstep
