#include "simulator/replay/single_ways.h"

#include <algorithm>

namespace lockstep {

bool single_ways(const Topology& topology, const RouteOptions& routes, std::span<const Way> ways) {
  Router router(topology, routes);
  Route route;
  const auto is_single = [&](NodeId source, NodeId destination, std::int32_t channel) {
    router.route({.source = source, .destination = destination, .channel = channel}, route);
    return !route.by_port;
  };
  return std::ranges::all_of(ways, [&](const Way& way) {
    return is_single(way.source, way.destination, way.channel) &&
           is_single(way.destination, way.source, way.channel);
  });
}

}  // namespace lockstep
