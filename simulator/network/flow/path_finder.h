#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "simulator/network/flow/connection_table.h"
#include "simulator/network/flow/flow_options.h"
#include "simulator/network/flow/max_min.h"
#include "simulator/network/flow/rate_limit.h"
#include "simulator/network/flow/window_limit.h"
#include "simulator/network/network_engine.h"

namespace lockstep {

/// What a transfer's way through the network means to the flow engine.
struct Path {
  /// The ports with the share of the flow that each carries: port p is constraint p.
  std::vector<MaxMin::Term> ports;
  Time propagation;    ///< sum over the hops
  Time pipeline;       ///< store-and-forward of one full packet, see PathFinder
  Time ack;            ///< last ACK: propagation and transmission back to the source; or zero
  WindowLimit window;  ///< where FlowOptions has a transport
  std::uint16_t source_port = 0;
  bool by_port = false;  ///< whether the way there or back may be another with another source port
};

/// Routes transfers, and turns sizes and routes into wire bytes and latencies:
///
///     wire bytes   W = B + header * ceil(B / payload), at least one packet
///     propagation  = sum over the hops of the link's delay
///     pipeline     = sum over the hops of m / C_hop, less the largest of them, where
///                    m = min(W, payload + header)
///     ack          = sum over the hops of the way back of (delay + ack_size / C_hop)
///
/// The slowest hop is left out because W / C of the draining flow holds it already. A message of
/// packets on equal links then takes W / C + (h - 1) m / C + propagation, which is what store and
/// forward gives. A sprayed flow crosses several ports at the same distance; the slowest counts.
/// Each m / C is rounded up to the picosecond; with whole_ns it is cut to whole nanoseconds.
///
/// ERRORS: Error for same-node transfers, ends that are no GPU or NVSwitch,
/// pairs without a route and ports without bandwidth (naming the link).
class PathFinder {
 public:
  static constexpr std::uint16_t kFirstPort = 10000;  ///< of sources

  PathFinder(const Topology& topology, const FlowOptions& options);

  /// The path of a connection, or with fresh_ports of its next transfer; valid until the next call.
  const Path& next(NodeId source, NodeId destination, std::int32_t channel);
  /// The path as it is now of a transfer that left from this port.
  const Path& again(NodeId source, NodeId destination, std::int32_t channel,
                    std::uint16_t source_port);
  /// From now on paths do without these links (one entry a link, 1: avoided), unless there is none
  /// without. O(nodes + links).
  void avoid(std::span<const char> links);

  Bytes wire_bytes(Bytes data) const;
  /// What the window of a path allows transfers of this size; nothing without a transport.
  RateLimit limit(const WindowLimit& window, Bytes data) const;
  /// What store-and-forward of a packet of this many wire bytes adds.
  Time pipeline(const std::vector<MaxMin::Term>& ports, Bytes packet) const;
  /// What a port carries at most, in bits per second. With whole_ns a full packet takes whole
  /// nanoseconds: 9052 B at 2880 Gbps go in 25 ns instead of 25.14. (Where a full packet takes less
  /// than 1 ns the nominal rate holds.)
  double capacity(PortId port) const;

 private:
  /// What a hop over links of one class takes.
  struct HopTimes {
    bool known = false;
    Time delay;
    Time ack_there;             ///< until an ACK is there
    Time packet, packet_there;  ///< transmission of a full packet, and until it is there
  };
  const LinkClass& class_of(PortId port) const;
  const HopTimes& times_of(PortId port);
  Time transmission(PortId port, Bytes size) const;
  void find_window(Path& path) const;
  const Path* known_between_switches(NodeId source, NodeId destination);
  void check_nodes(NodeId source, NodeId destination) const;
  void find(NodeId source, NodeId destination, std::uint16_t source_port, std::int32_t channel,
            Path& path);

  /// The topology without the links to avoid, and the numbers that its links have in the whole.
  struct Detour {
    Topology topology;
    std::vector<std::int32_t> link;
    std::optional<Router> router;
  };
  void route(const FlowKey& key);

  const Topology& topology_;
  FlowOptions options_;
  Router router_;
  std::vector<HopTimes> hop_times_;  // by class of links
  std::unique_ptr<Detour> detour_;   // where links are avoided
  ConnectionTable drawn_;            // with fresh_ports: source ports used
  Path path_;
  Route route_;
  // Of sprayed routes over the fabric: one for each pair of switches and kinds of the ports at its
  // ends, at most kKnownTerms ports together; all others differ in these two ports alone.
  std::vector<Path> known_;
  ConnectionTable known_number_;  // its index + 1
  std::size_t known_terms_ = 0;
};

}  // namespace lockstep
