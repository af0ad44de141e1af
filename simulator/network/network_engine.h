#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "base/units.h"

namespace lockstep {

/// A point-to-point transfer to carry out.
struct FlowSpec {
  NodeId source, destination;
  Bytes bytes;
  Time start;                ///< not before the engine's now()
  std::int32_t channel = 0;  ///< the collective's channel, for rail affinity
  std::uint64_t tag = 0;     ///< comes back in the events
};

/// A queue pair: it carries one transfer after the other, in order of the starts.
using ConnectionId = Id<struct ConnectionTag>;

struct NetworkEvent {
  enum class Kind : std::uint8_t {
    kSent,      ///< the last bit left the source
    kDelivered  ///< the destination has it all (or, if so configured, the source has the last ACK)
  };
  Time when;
  std::uint64_t tag = 0;
  Kind kind = Kind::kDelivered;
};

/// What one port carried from time 0 to now.
struct PortUse {
  Bytes bytes;  ///< wire bytes, headers included
  Time busy;    ///< bytes at the port's full rate
};

/// Counts of an engine that has packets, of the whole run so far.
struct PacketStatistics {
  std::int64_t events = 0;
  std::int64_t packets = 0;  ///< of data, those that were sent again too
  std::int64_t marks = 0;    ///< by ECN; a packet may be marked at several ports
  std::int64_t drops =
      0;  ///< of packets and ACKs: damaged, on links that are down, or without room
  std::int64_t pauses = 0;  ///< by PFC, of classes of ports
  std::int64_t storms = 0;  ///< of those, as long as the fabric's StormTime or longer
  std::int64_t stalls = 0;  ///< times that an NVLink had no credits
  Bytes max_queue;          ///< before a port of a switch
};

/// Links that fail in mid-run. From `from` to `until` nothing crosses them. Connections learn of it
/// `rerouting` later and take the ways that are left, those that have none wait; so long after the
/// links are back the ways are those of before.
struct LinkFault {
  std::vector<LinkId> links;
  Time from, until = Time::max();
  Time rerouting = Time::us(1000);  ///< Time::max(): connections keep their ways
};

/// A transfer that cannot go on: its way crosses a link that has been down since then.
struct StuckTransfer {
  std::uint64_t tag = 0;
  LinkId link;
  Time since;
};

/// Moves bytes over a Topology and owns the network's clock; the replay owns everything else and
/// drives the engine:
///
///     ConnectionId pair = engine.connect(source, destination, channel);
///     engine.start(pair, bytes, when, tag);              // any number, at or after now()
///     Time now = engine.advance(next_own_event, events); // stops early at the first events
///
/// Deterministic: same calls, same events in the same order.
class NetworkEngine {
 public:
  virtual ~NetworkEngine() = default;

  virtual Time now() const = 0;
  /// A new connection between two nodes. The channel tells rails and ECMP draws apart: connections
  /// with the same arguments take the same way. ERRORS: Error when there is no route.
  virtual ConnectionId connect(NodeId source, NodeId destination, std::int32_t channel) = 0;
  /// The same in a traffic class, of which 0 goes first on every port; -1: that of connections that
  /// are given none. An engine without classes has one for all.
  virtual ConnectionId connect_in_class(NodeId source, NodeId destination, std::int32_t channel,
                                        std::int32_t /*traffic_class*/) {
    return connect(source, destination, channel);
  }
  /// Sends `bytes` over a connection, not before `when`, which is not before now(), nor before what
  /// was started on it earlier has left. `tag` comes back in the events.
  virtual void start(ConnectionId connection, Bytes bytes, Time when, std::uint64_t tag) = 0;
  /// A single transfer on a connection of its own.
  void start(const FlowSpec& flow) {
    start(connect(flow.source, flow.destination, flow.channel), flow.bytes, flow.start, flow.tag);
  }
  /// Moves the clock to `limit`, or to the first moment at which something is sent or delivered if
  /// that comes earlier; appends everything that happens at that moment. Returns now().
  /// With limit Time::max() and nothing under way the clock stays and no event is appended.
  virtual Time advance(Time limit, std::vector<NetworkEvent>& events) = 0;
  /// From now on a port has this share of its bandwidth. PRECONDITION: > 0.
  /// ERRORS: Error where the engine cannot change a link while it runs.
  virtual void scale_capacity(PortId, double) {
    throw Error("this engine cannot change links while it runs").hint("use --engine flow");
  }
  /// From `when` on, which is not before now(), a port has this share of its bandwidth, and its
  /// link loses packets with this probability. Whether the engine makes the change by itself; else
  /// nothing has happened.
  virtual bool plan_change(Time /*when*/, PortId, double /*share*/, double /*loss*/) {
    return false;
  }
  /// Before the first connection: ways of transfers depend on the source port that each draws, so
  /// that their messages meet at random and where packets queue matters. Of no meaning to an engine
  /// without such draws, or with packets.
  virtual void meet_by_packets() {}
  /// Before the first connection and the first plan_change(). ERRORS: Error where the engine's
  /// links cannot fail so.
  virtual void add_fault(const LinkFault&) {
    throw Error("links of this engine cannot fail in mid-run").hint("use --engine flow");
  }
  /// Transfers under way that wait for links which are down, in order of their connections.
  virtual std::vector<StuckTransfer> stuck() const { return {}; }
  /// One entry a port (2 * links).
  virtual std::vector<PortUse> port_use() const = 0;
  /// Nothing from an engine without packets.
  virtual std::optional<PacketStatistics> packet_statistics() const { return std::nullopt; }
  /// Whether what has left its sender waits in queues on its way. A fluid's transfers are held back
  /// at the sender for as long as anything on their way is full.
  virtual bool has_queues() const { return false; }
  /// Whether a connection's transfers are messages of their own, which set out when they are
  /// started, and draw source ports.
  virtual bool carries_messages() const { return false; }
  /// Of an engine that carries messages: each of these connections is to carry so many, and they
  /// draw ports in turn, as if first all of them sent the first one.
  virtual void draw_ports(std::span<const ConnectionId>, std::int32_t /*messages*/) {}
  /// Whether packets may get lost or transfers begin by lot, so that no two runs of a collective
  /// are alike.
  virtual bool runs_by_chance() const { return false; }
};

}  // namespace lockstep
