#include "simulator/network/flow/path_finder.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "base/index.h"

namespace lockstep {
namespace {

constexpr std::uint16_t kListenPort = 100;

LinkId link_of(PortId port) { return LinkId(port.value / 2); }

void check_size(Bytes size, std::int64_t least, const char* what) {
  if (size.count() < least) {
    throw Error(fmt::format("the {} is {} bytes", what, size.count()))
        .expected(fmt::format("at least {}", least));
  }
}

/// Calls add(hops) for each group of hops at one distance from the source: their shares sum to 1.
template <class Hops, class F>
void for_each_distance(const Hops& hops, F add) {
  constexpr double kRounding = 1e-3;
  double share = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < hops.size(); ++i) {
    share += hops[i].coefficient;
    if (share > 1 - kRounding || i + 1 == hops.size()) {
      add(std::span(hops).subspan(begin, i + 1 - begin));
      begin = i + 1;
      share = 0;
    }
  }
}

/// To a multiple of 2^-36, so that sums of shares are exact and rates independent of their order.
double rounded(double share) {
  if (share == 1) {
    return share;
  }
  constexpr double kUnit = 1.0 / (std::int64_t{1} << 36);
  return std::max(MaxMin::kMinCoefficient, std::round(share / kUnit) * kUnit);
}

PortId port_of(const MaxMin::Term& term) { return PortId(term.constraint.value); }

/// Of what takes time_of(port) over a port: the longest of each distance together, and the slowest.
struct Longest {
  Time sum, slowest;
};
template <class F>
Longest longest(const std::vector<MaxMin::Term>& ports, F time_of) {
  Longest of;
  for_each_distance(ports, [&](std::span<const MaxMin::Term> hops) {
    Time here;
    for (const MaxMin::Term& hop : hops) {
      here = std::max(here, time_of(port_of(hop)));
    }
    of.sum += here;
    of.slowest = std::max(of.slowest, here);
  });
  return of;
}

}  // namespace

PathFinder::PathFinder(const Topology& topology, const FlowOptions& options)
    : topology_(topology),
      options_(options),
      router_(topology, options.routes),
      hop_times_(topology.link_classes.size()) {
  check_size(options.payload, 1, "payload of a packet");
  check_size(options.header, 0, "header of a packet");
  check_size(options.ack_size, 0, "size of an ACK");
}

const LinkClass& PathFinder::class_of(PortId port) const {
  return topology_.class_of(link_of(port));
}

Bytes PathFinder::wire_bytes(Bytes data) const {
  check_size(data, 0, "size of a transfer");
  const std::int64_t payload = options_.payload.count();
  const std::int64_t packets =
      std::max<std::int64_t>(1, data.count() / payload + (data.count() % payload != 0 ? 1 : 0));
  return data + options_.header * packets;
}

double PathFinder::capacity(PortId port) const {
  double nominal = static_cast<double>(class_of(port).rate.bits_per_second());
  if (options_.local_share != 1 || options_.network_share != 1) {
    const Link& link = topology_.links[link_of(port).index()];
    const bool network = topology_.nodes[link.a.index()].kind == NodeKind::kSwitch ||
                         topology_.nodes[link.b.index()].kind == NodeKind::kSwitch;
    nominal = std::floor(nominal * (network ? options_.network_share : options_.local_share));
  }
  if (options_.transport && options_.transport->congestion == TransportTerms::Congestion::kHpcc) {
    nominal *= options_.transport->hpcc_target;
  }
  if (options_.whole_ns && nominal > 0) {
    const Bytes packet = options_.payload + options_.header;
    const Time time = transmission(port, packet);
    if (time > Time()) {
      const double whole =
          static_cast<double>(packet.count()) * 8 / static_cast<double>(time.count_ns()) * 1e9;
      return whole * (nominal / static_cast<double>(class_of(port).rate.bits_per_second()));
    }
  }
  return nominal;
}

Time PathFinder::transmission(PortId port, Bytes size) const {
  const Bandwidth rate = class_of(port).rate;
  if (options_.whole_ns) {
    __extension__ using Wide = __int128;
    const Wide ns = static_cast<Wide>(size.count()) * 8 * 1'000'000'000 / rate.bits_per_second();
    return Time::ns(static_cast<std::int64_t>(std::min<Wide>(ns, Time::max().count_ns())));
  }
  return transfer_time(size, rate);
}

Time PathFinder::pipeline(const std::vector<MaxMin::Term>& ports, Bytes packet) const {
  const Longest packets = longest(ports, [&](PortId port) { return transmission(port, packet); });
  return packets.sum - packets.slowest;
}

const PathFinder::HopTimes& PathFinder::times_of(PortId port) {
  HopTimes& times = hop_times_[at(topology_.links[link_of(port).index()].link_class)];
  if (!times.known) {
    const Time delay = class_of(port).delay;
    const Time packet = transmission(port, options_.payload + options_.header);
    times = {true, delay, delay + transmission(port, options_.ack_size), packet, delay + packet};
  }
  return times;
}

/// What next() gives where only the ports at the ends differ from a path that is known, or nothing.
const Path* PathFinder::known_between_switches(NodeId source, NodeId destination) {
  constexpr std::size_t kKnownTerms = std::size_t{1} << 22;
  const auto ends = router_.fabric_ends(source, destination);
  const auto classes = static_cast<std::int32_t>(topology_.link_classes.size());
  if (!ends || classes > 1 << 12) {
    return nullptr;
  }
  const auto kind = [&](PortId port) { return topology_.links[link_of(port).index()].link_class; };
  if (known_terms_ > kKnownTerms) {
    known_.clear();
    known_number_ = {};
    known_terms_ = 0;
  }
  std::uint32_t& number = known_number_(NodeId(ends->from), NodeId(ends->to),
                                        kind(ends->up) * classes + kind(ends->down));
  if (number == 0) {
    Path path;
    find(source, destination, kFirstPort, 0, path);
    known_terms_ += path.ports.size();
    known_.push_back(std::move(path));
    number = static_cast<std::uint32_t>(known_.size());
  }
  path_ = known_[number - 1];
  path_.ports.front().constraint = ConstraintId(ends->up.value);
  path_.ports.back().constraint = ConstraintId(ends->down.value);
  return &path_;
}

void PathFinder::avoid(std::span<const char> links) {
  detour_.reset();
  if (std::ranges::count(links, 0) == std::ssize(links)) {
    return;
  }
  detour_ = std::make_unique<Detour>();
  detour_->topology = topology_;
  detour_->topology.links.clear();
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (links[i] == 0) {
      detour_->topology.links.push_back(topology_.links[i]);
      detour_->link.push_back(static_cast<std::int32_t>(i));
    }
  }
  detour_->router.emplace(detour_->topology, options_.routes);
}

/// Into route_: without the links to avoid, if there is such a route.
void PathFinder::route(const FlowKey& key) {
  if (detour_) {
    try {
      detour_->router->route(key, route_);
      for (Hop& hop : route_.hops) {
        const std::int32_t link = detour_->link[static_cast<std::size_t>(hop.port.value / 2)];
        hop.port = PortId(2 * link + hop.port.value % 2);
      }
      return;
    } catch (const Error&) {  // none
    }
  }
  router_.route(key, route_);
}

const Path& PathFinder::next(NodeId source, NodeId destination, std::int32_t channel) {
  check_nodes(source, destination);
  if (!options_.fresh_ports && options_.routes.spray && !detour_) {
    if (const Path* path = known_between_switches(source, destination)) {
      return *path;
    }
  }
  const std::uint32_t draw =
      options_.fresh_ports ? drawn_(source, destination, 0)++ : static_cast<std::uint32_t>(channel);
  return again(source, destination, channel, static_cast<std::uint16_t>(kFirstPort + draw));
}

const Path& PathFinder::again(NodeId source, NodeId destination, std::int32_t channel,
                              std::uint16_t source_port) {
  check_nodes(source, destination);
  path_.source_port = source_port;
  find(source, destination, source_port, channel, path_);
  return path_;
}

void PathFinder::check_nodes(NodeId source, NodeId destination) const {
  const auto nodes = static_cast<std::int32_t>(topology_.nodes.size());
  for (const NodeId node : {source, destination}) {
    if (node.value < 0 || node.value >= nodes) {
      throw Error(fmt::format("a transfer names node {}", node.value))
          .expected(fmt::format("a node of the topology, 0 to {}", nodes - 1));
    }
  }
  if (source == destination) {
    throw Error(fmt::format("a transfer from node {} to itself", source.value))
        .hint("what stays on one GPU does not cross the network");
  }
}

void PathFinder::find(NodeId source, NodeId destination, std::uint16_t source_port,
                      std::int32_t channel, Path& path) {
  if (options_.wait_for_ack || options_.transport) {
    route({destination, source, kListenPort, source_port, channel});
  } else {
    route_.hops.clear();
    route_.by_port = false;
  }
  path.by_port = route_.by_port;
  const auto copy_ports = [&] {
    path.ports.clear();
    for (const Hop& hop : route_.hops) {
      if (class_of(hop.port).rate.bits_per_second() <= 0) {
        const Link& link = topology_.links[link_of(hop.port).index()];
        throw Error(fmt::format(
            "the way from node {} to node {} crosses link {} (node {} to "
            "node {}), which has no bandwidth",
            source.value, destination.value, link_of(hop.port).value, link.a.value, link.b.value));
      }
      path.ports.push_back({ConstraintId(hop.port.value), rounded(hop.share)});
    }
  };
  copy_ports();
  const auto sum_of = [&](Time HopTimes::*time) {
    return longest(path.ports, [&](PortId port) { return times_of(port).*time; }).sum;
  };
  const Time back = sum_of(&HopTimes::ack_there);
  path.ack = options_.wait_for_ack ? back : Time();

  route({source, destination, source_port, kListenPort, channel});
  path.by_port |= route_.by_port;
  copy_ports();
  path.propagation = sum_of(&HopTimes::delay);
  const Longest packets = longest(path.ports, [&](PortId port) { return times_of(port).packet; });
  path.pipeline = packets.sum - packets.slowest;
  if (options_.transport) {
    path.window.round_trip = sum_of(&HopTimes::packet_there) + back;
    find_window(path);
  }
}

/// The window of a queue pair on this path: as given, or so many products of the bandwidth of the
/// path and its round trip without headers and ACKs.
void PathFinder::find_window(Path& path) const {
  const TransportTerms& transport = *options_.transport;
  Time round_trip = path.propagation * 2, slowest;
  double rate = MaxMin::kUnbounded;  // of the narrowest distance, all its ports together
  for_each_distance(path.ports, [&](std::span<const MaxMin::Term> hops) {
    Time data, packet;
    double together = 0;
    for (const MaxMin::Term& hop : hops) {
      const PortId port = port_of(hop);
      data = std::max(data, transmission(port, options_.payload));
      packet = std::max(packet, transmission(port, options_.payload + options_.header));
      together += static_cast<double>(class_of(port).rate.bits_per_second());
    }
    round_trip += data;
    slowest = std::max(slowest, packet / std::ssize(hops));
    rate = std::min(rate, together);
  });
  path.window.payload = options_.payload;
  path.window.ack_interval = transport.ack_interval;
  path.window.packet = slowest;
  path.window.pipeline = path.pipeline;
  path.window.window = transport.window;
  if (transport.window == Bytes()) {
    const double product = round_trip.seconds() * rate / 8;
    path.window.window = Bytes(
        std::max<std::int64_t>(1, static_cast<std::int64_t>(transport.window_factor * product)));
    if (transport.ack_interval > 1) {  // what two ACKs confirm, as the packet engine has it
      path.window.window =
          std::max(path.window.window, options_.payload * (2 * transport.ack_interval));
    }
  }
}

RateLimit PathFinder::limit(const WindowLimit& window, Bytes data) const {
  if (!options_.transport) {
    return {};
  }
  const std::int64_t full = (options_.payload + options_.header).count();
  const std::int64_t packets = std::max<std::int64_t>(
      1, (data.count() + options_.payload.count() - 1) / options_.payload.count());
  const Bytes wire = wire_bytes(data);
  RateLimit limit;
  if (window.limits(packets)) {
    const double part =
        static_cast<double>(wire.count() - full * (packets - 1)) / static_cast<double>(full);
    limit.fresh =
        static_cast<double>(wire.count()) * 8 / window.sender_time(packets, part).seconds();
  }
  limit.steady = window.limits(std::numeric_limits<std::int64_t>::max())
                     ? window.steady_rate() * static_cast<double>(full) * 8
                     : MaxMin::kUnbounded;
  return limit;
}

}  // namespace lockstep
