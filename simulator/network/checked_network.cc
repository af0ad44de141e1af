#include "simulator/network/checked_network.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace lockstep {

CheckedNetwork::CheckedNetwork(std::unique_ptr<NetworkEngine> engine, const Topology& topology)
    : engine_(std::move(engine)),
      topology_(topology),
      loads_(topology.nodes.size()),
      last_(engine_->now()) {
  for (const Link& link : topology.links) {
    const auto rate = static_cast<double>(
        topology.link_classes[static_cast<std::size_t>(link.link_class)].rate.bits_per_second());
    for (const NodeId end : {link.a, link.b}) {
      loads_[end.index()].rate_out += rate;
      loads_[end.index()].rate_in += rate;
    }
  }
}

ConnectionId CheckedNetwork::connect(NodeId source, NodeId destination, std::int32_t channel) {
  return connect_in_class(source, destination, channel, -1);
}

ConnectionId CheckedNetwork::connect_in_class(NodeId source, NodeId destination,
                                              std::int32_t channel, std::int32_t traffic_class) {
  const ConnectionId id = engine_->connect_in_class(source, destination, channel, traffic_class);
  LOCKSTEP_CHECK(id.valid(), "a connection has an id");
  connections_.resize(std::max(connections_.size(), id.index() + 1));
  connections_[id.index()] = {source, destination};
  return id;
}

void CheckedNetwork::start(ConnectionId connection, Bytes bytes, Time when, std::uint64_t tag) {
  LOCKSTEP_CHECK(connection.valid() && connection.index() < connections_.size(),
                 "a transfer is on a connection that was made");
  LOCKSTEP_CHECK(bytes >= Bytes(0), "a transfer has bytes");
  LOCKSTEP_CHECK(when >= now(), "a transfer starts now or later");
  under_way_[tag].push_back({bytes, when, Time(), connection.value});
  engine_->start(connection, bytes, when, tag);
}

Time CheckedNetwork::advance(Time limit, std::vector<NetworkEvent>& events) {
  const std::size_t before = events.size();
  const Time now = engine_->advance(limit, events);
  LOCKSTEP_CHECK(now >= last_, fmt::format("the network's clock went back from {} to {} ps",
                                           last_.count_ps(), now.count_ps()));
  LOCKSTEP_CHECK(now <= std::max(limit, last_), "the network stops at the limit");
  LOCKSTEP_CHECK(now == engine_->now(), "advance() returns now()");
  last_ = now;
  for (std::size_t i = before; i < events.size(); ++i) {
    check(events[i]);
  }
  return now;
}

/// The time that the bytes need even with all ports of a node to themselves.
Time CheckedNetwork::least_time(const Transfer& transfer) const {
  const Ends& ends = connections_[static_cast<std::size_t>(transfer.connection)];
  if (!fixed_rates_ || ends.source == ends.destination) {
    return {};
  }
  const double rate =
      std::min(loads_[ends.source.index()].rate_out, loads_[ends.destination.index()].rate_in);
  const double seconds = static_cast<double>(transfer.bytes.count()) * 8 / rate;
  constexpr double kRounding = 1 - 1e-9;
  return rate > 0 ? Time::ps(std::llround(std::floor(seconds * 1e12 * kRounding))) : Time();
}

void CheckedNetwork::check(const NetworkEvent& event) {
  LOCKSTEP_CHECK(event.when == last_, fmt::format("an event of {} ps comes at {} ps",
                                                  event.when.count_ps(), last_.count_ps()));
  const auto found = under_way_.find(event.tag);
  LOCKSTEP_CHECK(found != under_way_.end(),
                 fmt::format("an event of transfer {}, which is not under way", event.tag));
  std::deque<Transfer>& same = found->second;
  // What is sent is the first that is not yet; what is delivered, the first of all.
  const bool sent = event.kind == NetworkEvent::Kind::kSent;
  const auto at = sent ? std::ranges::find(same, false, &Transfer::is_sent) : same.begin();
  LOCKSTEP_CHECK(at != same.end(), fmt::format("transfer {} was sent twice", event.tag));
  LOCKSTEP_CHECK(event.when >= at->start + least_time(*at),
                 fmt::format("transfer {} of {} bytes took {} ps, less than its ends' ports need",
                             event.tag, at->bytes.count(), (event.when - at->start).count_ps()));
  if (sent) {
    at->is_sent = true;
    return;
  }
  LOCKSTEP_CHECK(at->is_sent,
                 fmt::format("transfer {} was delivered before it was sent", event.tag));
  const Ends& ends = connections_[static_cast<std::size_t>(at->connection)];
  if (ends.source != ends.destination) {
    loads_[ends.source.index()].sent += at->bytes;
    loads_[ends.destination.index()].received += at->bytes;
  }
  same.pop_front();
  if (same.empty()) {
    under_way_.erase(found);
  }
}

void CheckedNetwork::scale_capacity(PortId port, double share) {
  fixed_rates_ = false;
  engine_->scale_capacity(port, share);
}

bool CheckedNetwork::plan_change(Time when, PortId port, double share, double loss) {
  fixed_rates_ = false;
  return engine_->plan_change(when, port, share, loss);
}

std::vector<PortUse> CheckedNetwork::port_use() const {
  LOCKSTEP_CHECK(under_way_.empty(),
                 fmt::format("transfers of {} tags were never delivered", under_way_.size()));
  std::vector<PortUse> use = engine_->port_use();
  LOCKSTEP_CHECK(use.size() == 2 * topology_.links.size(), "every port has its use");
  std::vector<double> out(loads_.size()), in(loads_.size());
  for (std::size_t port = 0; port < use.size(); ++port) {
    const Link& link = topology_.links[port / 2];
    const auto bytes = static_cast<double>(use[port].bytes.count());
    LOCKSTEP_CHECK(bytes >= 0 && use[port].busy >= Time(), "a port carries bytes");
    out[(port % 2 == 0 ? link.a : link.b).index()] += bytes;
    in[(port % 2 == 0 ? link.b : link.a).index()] += bytes;
  }
  for (std::size_t node = 0; node < loads_.size(); ++node) {
    // Each port's bytes are rounded to whole ones, and summed in floating point before that.
    const auto enough = [](double carried, Bytes brought) {
      const auto least = static_cast<double>(brought.count());
      return carried >= least * (1 - 1e-9) - 1e3;
    };
    LOCKSTEP_CHECK(enough(out[node], loads_[node].sent),
                   fmt::format("node {}: its ports carried {:.0f} bytes away of {} that were sent",
                               node, out[node], loads_[node].sent.count()));
    LOCKSTEP_CHECK(enough(in[node], loads_[node].received),
                   fmt::format("node {}: its ports brought {:.0f} bytes of {} that were received",
                               node, in[node], loads_[node].received.count()));
  }
  return use;
}

}  // namespace lockstep
