#include "simulator/replay/spared_ports.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "simulator/network/flow/fluid_network.h"
#include "simulator/network/flow/path_finder.h"

namespace lockstep {
namespace {

__extension__ using Wide = __int128;
constexpr std::int64_t kOne = std::int64_t{1} << 40;  // weight of a whole flow, as MaxMin keeps it

std::int64_t weight_of(const MaxMin::Term& hop) {
  return std::llround(hop.coefficient * static_cast<double>(kOne));
}

class Loads {
 public:
  Loads(const Topology& topology, const FlowOptions& flow, std::span<const NetworkChange> changes)
      : paths_(topology, flow), ports_(2 * topology.links.size()) {
    for (std::size_t port = 0; port < ports_.size(); ++port) {
      ports_[port].least = ports_[port].most = paths_.capacity(PortId(port));
    }
    for (const NetworkChange& change : changes) {
      Port& port = ports_[change.port.index()];
      const double capacity = paths_.capacity(change.port) * change.share;
      port.least = std::min(port.least, capacity);
      port.most = std::max(port.most, capacity);
    }
  }

  /// Adds up what the ports at one end of the ways let through at most. `ways` are sorted by their
  /// nodes at that end.
  void add(const std::vector<Way>& ways, bool from_the_end) {
    for (std::size_t begin = 0; begin < ways.size();) {
      const auto node = [&](std::size_t i) {
        return from_the_end ? ways[i].destination : ways[i].source;
      };
      std::size_t end = begin;
      while (end < ways.size() && node(end) == node(begin)) {
        ++end;
      }
      add_node(std::span(ways).subspan(begin, end - begin), from_the_end);
      begin = end;
    }
    for (Port& port : ports_) {
      const auto room = static_cast<Wide>(std::floor(port.least * kUnits)) * kOne;
      const bool fits = port.used && port.load <= room;
      port.fits_end = from_the_end ? fits : port.fits_end;
      port.fits_start = from_the_end ? port.fits_start : fits;
      port.load = 0;
    }
  }

  std::vector<char> spared() const {
    std::vector<char> result;
    for (const Port& port : ports_) {
      result.push_back(!port.first && (port.fits_start || (port.fits_end && !port.last)) ? 1 : 0);
    }
    return result;
  }

 private:
  static constexpr double kUnits = FluidNetwork::kRateUnits;
  static constexpr Wide kMostRatio = Wide{kOne} * 64;  // more never fits
  static constexpr Wide kTooMuch = Wide{1} << 120;

  struct Port {
    double least = 0, most = 0;
    Wide load = 0;             // in units, times kOne
    std::int64_t counted = 0;  // of it for the end port at hand, per unit of that
    std::uint32_t stamp = 0;
    bool used = false, first = false, last = false, fits_start = false, fits_end = false;
  };

  /// All ways of one node. An end port at a time, of which a node has few.
  void add_node(std::span<const Way> ways, bool from_the_end) {
    ends_.clear();
    for (std::size_t i = 0; i < ways.size(); ++i) {
      const auto& hops = paths_.next(ways[i].source, ways[i].destination, ways[i].channel).ports;
      const MaxMin::Term& end = from_the_end ? hops.back() : hops.front();
      auto known = std::ranges::find(ends_, end.constraint.value, &End::port);
      if (known == ends_.end()) {
        ends_.push_back({end.constraint.value, ++stamp_});
        known = ends_.end() - 1;
        known->most = static_cast<Wide>(std::ceil(ports_[end.constraint.index()].most * kUnits));
      }
      Port& end_port = ports_[end.constraint.index()];
      (from_the_end ? end_port.last : end_port.first) = true;
      const std::int64_t end_weight = weight_of(end);
      for (const MaxMin::Term& hop : hops) {
        Port& port = ports_[hop.constraint.index()];
        port.used = true;
        // Rounded up where the flow is split at its end already.
        const Wide share =
            end_weight == kOne
                ? weight_of(hop)
                : (static_cast<Wide>(weight_of(hop)) * kOne + end_weight - 1) / end_weight;
        const auto ratio = static_cast<std::int64_t>(std::min(share, kMostRatio));
        port.load += share > kMostRatio ? kTooMuch : 0;
        if (port.stamp != known->stamp) {
          port.stamp = known->stamp;
          port.counted = 0;
        }
        if (ratio > port.counted) {
          port.load += known->most * (ratio - port.counted);
          port.counted = ratio;
        }
      }
    }
  }

  struct End {
    std::int32_t port;
    std::uint32_t stamp;
    Wide most = 0;
  };

  PathFinder paths_;
  std::vector<Port> ports_;
  std::vector<End> ends_;
  std::uint32_t stamp_ = 0;
};

}  // namespace

std::vector<char> spared_ports(const Topology& topology, const FlowOptions& flow,
                               std::vector<Way> ways, std::span<const NetworkChange> changes) {
  Loads loads(topology, flow, changes);
  std::ranges::sort(ways);
  loads.add(ways, false);
  std::ranges::sort(ways, {},
                    [](const Way& way) { return std::pair(way.destination, way.source); });
  loads.add(ways, true);
  return loads.spared();
}

}  // namespace lockstep
