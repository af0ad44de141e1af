#include "simulator/replay/recalled_ways.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <unordered_map>
#include <utility>

namespace lockstep {
namespace {

constexpr std::uint16_t kFirstPort = 10000, kListenPort = 100;  // UDP, as the packet engine's

RouteOptions sprayed(RouteOptions options, bool spray) {
  options.spray = spray;
  return options;
}

/// Bytes of data and of its ACKs on the wire.
struct Wire {
  std::int64_t data = 0, acks = 0;

  void add(Bytes message, std::int64_t times, const RecallOptions& options) {
    const std::int64_t bytes = std::max<std::int64_t>(1, message.count());
    const std::int64_t packets = (bytes + options.payload.count() - 1) / options.payload.count();
    const std::int64_t confirmed = (packets + options.ack_interval - 1) / options.ack_interval;
    data += times * (bytes + packets * options.header.count());
    acks += times * confirmed * options.ack.count();
  }
};

/// What a slot sends.
Wire wire_of(const Schedule& schedule, const Slot& slot, const RecallOptions& options) {
  Wire wire;
  if (schedule.chunk_sizes.empty()) {
    wire.add(schedule.bytes(slot, 0), slot.count, options);
    return wire;
  }
  for (std::int32_t k = 0; k < slot.count; ++k) {
    wire.add(schedule.bytes(slot, k), 1, options);
  }
  return wire;
}

}  // namespace

RecalledWaysFinder::RecalledWaysFinder(const Topology& topology, const RecallOptions& options)
    : topology_(topology),
      options_(options),
      one_way_(topology, sprayed(options.routes, false)),
      all_ways_(topology, sprayed(options.routes, true)) {}

RecalledWays RecalledWaysFinder::find(const Schedule& schedule,
                                      const std::function<NodeId(std::int32_t place)>& node_of) {
  RecalledWays ways;
  std::unordered_map<std::int32_t, std::int64_t> number_of;  // by port, as met
  const std::int64_t full = options_.payload.count() + options_.header.count();
  const auto cross = [&](PortId port, std::int64_t bytes) {
    const LinkId link(port.value / 2);
    const LinkClass& kind = topology_.class_of(link);
    const auto [number, is_new] =
        number_of.try_emplace(port.value, static_cast<std::int64_t>(number_of.size()));
    ways.description.push_back(number->second);
    if (is_new) {
      const Link& ends = topology_.links[link.index()];
      const auto kind_of = [&](NodeId node) {
        return static_cast<std::int64_t>(topology_.nodes[node.index()].kind);
      };
      ways.loads.push_back({port.value, 0});
      ways.description.insert(ways.description.end(),
                              {kind.rate.bits_per_second(), kind.delay.count_ps(),
                               port.value % 2 == 0 ? kind_of(ends.a) * 8 + kind_of(ends.b)
                                                   : kind_of(ends.b) * 8 + kind_of(ends.a)});
    }
    ways.loads[static_cast<std::size_t>(number->second)].bytes += bytes;
    const Time packet = Time::seconds(static_cast<double>(full) / kind.rate.bytes_per_second());
    ways.packet = std::max(ways.packet, packet);
    return kind.delay + packet;
  };
  const auto walk = [&](const FlowKey& key, std::int64_t bytes) {
    one_way_.route(key, route_);
    if (options_.fresh_ports || options_.routes.spray) {
      all_ways_.route(key, all_);
      const bool single = all_.hops.size() == route_.hops.size();
      ways.steady = ways.steady && single;
      if (options_.routes.spray || !single) {  // a way that each transfer draws is any of them
        std::swap(route_, all_);
      }
    }
    // Hops at one distance share the bytes out, and come one after the other.
    constexpr double kRounding = 1e-3;
    Time trip, here;
    double share = 0;
    for (const Hop& hop : route_.hops) {
      const auto part =
          static_cast<std::int64_t>(std::ceil(hop.share * static_cast<double>(bytes)));
      here = std::max(here, cross(hop.port, part));
      ways.description.push_back(std::llround(hop.share * 0x1p36));
      share += hop.share;
      if (share > 1 - kRounding) {
        trip += std::exchange(here, Time());
        share = 0;
      }
    }
    trip += here;
    ways.description.push_back(-1);
    return trip;
  };
  for (const Slot& slot : schedule.slots) {
    const Wire wire = wire_of(schedule, slot, options_);
    const NodeId source = node_of(slot.source), destination = node_of(slot.destination);
    const auto port = static_cast<std::uint16_t>(kFirstPort + slot.channel);
    Time trip = walk({source, destination, port, kListenPort, slot.channel}, wire.data);
    trip += walk({destination, source, kListenPort, port, slot.channel}, wire.acks);
    ways.rest = std::max(ways.rest, trip);
  }
  std::ranges::sort(ways.loads, {}, &RecalledWays::Load::port);
  return ways;
}

}  // namespace lockstep
