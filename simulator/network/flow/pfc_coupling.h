#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "simulator/network/flow/transport_terms.h"

namespace lockstep {

/// What PFC makes of queues: who sends to a switch by a port whose packets wait there for long is
/// paused, and with the flow that is to blame all its neighbours on that link.
///
///     held(i) = bits that came by ingress port i and wait
///     used(i) = held(i) + a packet of each flow that passes, for the part of the time that it
///               takes at its egress, + half of what an ACK lets go at once - the port's reserve
///     T       = alpha(i) (buffer - sum of used, none counted above T), or a fixed number of bits
///     i is paused while used(i) > T; what is above T waits on the other side of the link
///
/// What this does to rates, with X the rate of the flows that wait beyond i:
///
///     shares   ingress ports that wait for one port get it by what each holds (first in, first
///              out), so those that are paused share it port by port and not flow by flow
///     victims  of a paused NIC send packet for packet with the flows to blame (round robin), so at
///              their rate; of a paused switch they wait among the K bits that it keeps of those
///              flows (they share the T' of an ingress with its victims), which leave at rate X;
///              and at least for as long as a pause takes. It ends O bits (the resume offset) below
///              T, and of what was under way for twice the link's delay t, X / (X + V) was of those
///              flows, with V the rate of the victims. So D = max(K / X, O / X + 2 t C / (X + V)),
///              and with a window w, l bits in all, a round trip A and an own ingress with T' a
///              victim gets at most T' / D, and min(w, l) / (A + sum of D on its way)
///
/// What waits on the other side is held by that switch, and so on up to the NICs, where it has not
/// been sent. Sources: IEEE 802.1Qbb; Choudhury, Hahne 1998 (thresholds); the rest follows from
/// FIFO queues. Holds for pauses that last: for bursts below a few round trips it is too strict.
class PfcCoupling {
 public:
  /// A connection under way that is not sprayed.
  struct Flow {
    std::span<const std::int32_t> way;  ///< ports, in order
    double rate = 0;                    ///< bit/s
    double window = 0, round_trip = 0;  ///< bits (the transfer's if less), s
    double waiting = 0;                 ///< bits
    std::int32_t hop = -1;              ///< the port of its way that they wait for, -1: none
    double cap = 0;                     ///< result: bit/s
    double here = 0;                    ///< result: bits in front of that port
    double delay = 0;                   ///< result: s that it waits behind others
    double unsent = 0;                  ///< result: bits that its NIC has not been able to send
  };

  PfcCoupling(const Topology& topology, const TransportTerms& transport, Bytes packet);

  /// Bits below which nothing is ever paused; infinity where nothing pauses.
  double least() const { return least_; }
  /// Lowers the caps of flows. O(flows x hops), and O(paused ports x flows).
  void apply(std::vector<Flow>& flows);

 private:
  struct Waiting {
    std::int32_t flow, hop;
    double bits;
  };
  struct Ingress {
    double held = 0, rate = 0;
    double beside = 0;  ///< what it has of packets, beside what is held, over its reserve
    std::int32_t flows = 0;
    double limit = 0;  ///< T, where it is paused
    bool paused = false;
  };

  void hold(const std::vector<Flow>& flows);
  void pause();
  void share(std::vector<Flow>& flows);
  void hold_up_at_switches(std::vector<Flow>& flows);
  void hold_up_at_nics(std::vector<Flow>& flows);
  void move_on(std::vector<Flow>& flows);
  double kept(const Waiting& waiting, const Ingress& ingress) const {
    return waiting.bits * (ingress.paused ? ingress.limit / ingress.held : 1);
  }

  std::vector<double> shared_;           // per node: bits; 0: does not pause
  std::vector<double> fixed_;            // per node: T; 0: by alpha
  std::vector<std::int32_t> to_, from_;  // per port: nodes
  std::vector<double> capacity_;         // per port
  std::vector<double> propagation_;      // per port: s
  std::vector<double> alpha_;            // per port
  std::vector<bool> host_;               // per node
  double packet_, burst_, reserve_, resume_, least_;
  std::vector<Waiting> waiting_, further_;
  std::vector<Ingress> ingress_;           // per port
  std::vector<std::int32_t> used_;         // ports with entries in ingress_
  std::map<std::int32_t, double> paused_;  // links that a switch has to hold back for: X
};

}  // namespace lockstep
