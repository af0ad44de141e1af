#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "simulator/network/flow/dcqcn_point.h"
#include "simulator/network/flow/path_finder.h"
#include "simulator/network/flow/pfc_coupling.h"
#include "simulator/network/flow/rate_law.h"

namespace lockstep {

/// Queues at the switch ports that are full, and what they lead to: marks, to which DCQCN's senders
/// answer, and pauses, which hold up neighbours. Rates stay those of the max-min system with caps;
/// the queues decide the caps. Every step (2 to 5 us) of a time in which queues may be long enough:
///
///     o  bits of a connection that wait in front of the port that limits it; x its rate, R its
///        DCQCN rate, w its window, A its round trip, s what its NIC has left for it
///
///     do/dt = min(R, s) - x   up to the window's room, min(w R / line, left) - x A, and not below
///     0
///             -x              while it is above that
///     q     = sum of o at the port; packets are marked with probability p(q) (RED)
///     cap   = R where o = 0; where packets wait none, or, once a sender at the port has slowed
///     down
///             and windows differ, C o / q (first in, first out; C without what only passes)
///
/// Senders heed a mark 2 A after it was made: its way to them, and that of what they send less.
/// Where ACKs have no right of way they wait in the queues of what goes back over the links: the
/// mark comes as much later, and A is as much longer. Where each transfer is a queue pair of its
/// own, it begins at the line rate and heeds no marks of others.
///
/// DcqcnPoint turns marks into R, PfcCoupling queues into further caps. s is a turn at the NIC, the
/// same for all but those whose windows are full or who have slowed down, and who take less.
/// Without DCQCN those whose packets do not wait have no more than that either.
///
/// Packets wait at the first distance from the source at which a port of their way is full (those
/// behind it get no more than it lets through), and a sprayed connection at all full ports there,
/// at each its part. A flow whose rate is below that of others there goes on to wait there until
/// its own packets are through, at each of these ports.
///
/// Holds where transfers are long against a round trip (a few us), because a queue begins to count
/// one step after it has begun. What DCQCN costs is random: marks are drawn, so with the seed the
/// time of a collision or an incast scatters by some per cent, as the packet engine's does. Checked
/// by tests/differential/congestion_packet_test.cc.
///
/// Complexity: O(hops) a flow under way and step while a queue could be long, else O(hops) a change
/// of a rate. Memory: 170 B and 4 B a hop a connection, 1 KiB a port that has marked. Nothing of it
/// exists without a transport.
class CongestionLaw final : public RateLaw {
 public:
  CongestionLaw(const Topology& topology, const FlowOptions& options);

  /// A connection and its way; again where that changes.
  void connect(ConnectionId connection, const Path& path);
  Time adjust(FluidNetwork& network, std::span<const VariableId> changed) override;

 private:
  struct Past {
    std::uint32_t stamp = 0;
    double queue = 0;
  };
  struct Port {
    double capacity = 0;
    double kmin = 0, kmax = 0, pmax = 0;  ///< of marks, bits
    bool queues = false;                  ///< leaves an Ethernet switch
    // Of the present step:
    std::uint32_t stamp = 0;
    std::int32_t users = 0;
    double load = 0, level = 0, queue = 0, passing = 0;
    double earlier = 0;        ///< the queue a step before
    std::int32_t waiting = 0;  ///< of a NIC: those of its users whose packets wait in the network
    double turn = 0;           ///< of a NIC
    bool uneven = false;       ///< some have slowed down
    /// Of the queue, by step modulo its size; none if it was never long.
    std::vector<Past> history;
  };
  struct Flow {
    double window = 0, round_trip = 0, line_rate = 0;  ///< bits, s, bit/s
    double waiting = 0;                                ///< o, bits
    double ack_wait = 0;                               ///< s
    double left = 0;                                   ///< bits, at the last step
    double room = 0;                                   ///< for what waits, bits
    Time began;
    DcqcnPoint point;
    std::vector<std::int32_t> way;     ///< ports; none where it is sprayed
    std::int32_t queue_port = -1;      ///< where it waits, the last of those at:
    std::int32_t queue_distance = -1;  ///< counted from the source
    bool active = false;
  };

  bool may_queue(const FluidNetwork& network, VariableId flow) const;
  void measure(const FluidNetwork& network);
  void queue(const FluidNetwork& network, double elapsed);
  double window(const Flow& flow) const;
  void begin_anew(const FluidNetwork& network, std::int32_t flow);
  double ack_wait(const FluidNetwork& network, std::int32_t flow) const;
  void share_nics(const FluidNetwork& network);
  void remember();
  bool is_limiting(const Port& port, double rate, bool waits_here) const;
  double marked(const Port& port, std::uint32_t ago) const;
  void couple(const FluidNetwork& network);
  bool control(FluidNetwork& network);

  DcqcnParameters dcqcn_;
  bool has_dcqcn_, scale_window_, ack_first_, new_pairs_;
  Time step_;
  double packet_bits_;
  double least_queue_ = 0;  ///< bits below which nothing happens
  std::vector<Port> ports_;
  std::vector<Flow> flows_;
  std::vector<std::int32_t> active_;   // under way; those who have ended stay for a while
  std::vector<std::int32_t> touched_;  // ports, of the present step
  std::vector<std::pair<std::int32_t, double>> claims_;  // NIC and rate, scratch
  std::size_t shorten_at_ = 0;
  PfcCoupling pfc_;
  std::vector<PfcCoupling::Flow> coupled_;  // as active_, of a step
  Rng rng_;
  std::uint32_t stamp_ = 0;
  Time last_, next_ = Time::max();
};

}  // namespace lockstep
