#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "simulator/network/packet_engine_options.h"
#include "topologies/topology.h"

namespace lockstep {

/// DCQCN's reaction point (Zhu et al., SIGCOMM 2015, section 5).
struct DcqcnParameters {
  double gain = 1.0 / 256;
  Time alpha_interval = Time::us(55), decrease_interval = Time::us(50),
       increase_interval = Time::us(55);
  std::int64_t fast_recovery = 5;
  double additive = 400e6, hyper = 4e9, least = 100e6;  ///< bits per second
  bool clamp_target = false, scale_window = true;
};

/// What the hosts and switches of a fabric do beside sharing links, as far as a fluid can heed it:
/// windows, marks, congestion control, PFC. The flow engine does so where FlowOptions has one.
struct TransportTerms {
  enum class Congestion : std::uint8_t {
    kFair,   ///< settles near the max-min share by itself; nothing to correct
    kDcqcn,  ///< dcqcn_law.h
    kHpcc,   ///< keeps links at a share of their capacity
  };

  Bytes window;                   ///< of a queue pair; 0: its bandwidth-delay product times:
  double window_factor = 2;       ///<
  std::int64_t ack_interval = 4;  ///< packets that an ACK confirms
  Bytes ack_size{60};
  bool ack_first = true;  ///< ACKs do not wait in the queues of data that goes their way

  bool ecn = true;                                                ///< switches mark
  double kmin_per_gbps = 2000, kmax_per_gbps = 8000, pmax = 0.2;  ///< bytes, for rates not in:
  std::vector<PacketOptions::EcnRow> ecn_rows;

  bool pfc = true;            ///< switches pause; never where the buffer has no limit:
  Bytes buffer{32 << 20};     ///< of a switch; 0: no limit
  Bytes port_reserve{4096};   ///< of a port
  Bytes resume_offset{3072};  ///< below the threshold, where a paused port goes on
  std::int64_t headroom_packets = 4;
  bool pfc_dynamic =
      true;  ///< a port is paused beyond a share of what is free, else at a threshold
  double pfc_alpha = 0.125;        ///< that share
  bool pfc_alpha_by_rate = false;  ///< ports faster than the first GPU's first have more of it
  Bytes pfc_threshold;  ///< that threshold; 0: an equal part of what the switch's ports share

  Congestion congestion = Congestion::kDcqcn;
  DcqcnParameters dcqcn;
  double hpcc_target = 0.95;
  std::uint64_t seed = 1;  ///< of the marks

  /// Whether rates change between starts and ends of transfers (congestion_law.h). If not, runs can
  /// be folded by symmetry and repetition skipped.
  bool has_law() const {
    return (congestion == Congestion::kDcqcn && ecn) || (pfc && buffer > Bytes());
  }
};

/// The transport that the packet engine would model with these options: same names, same defaults.
/// `payload` is a packet's. With the option global_window it looks at routes; O(128 GPUs x GPUs).
/// ERRORS: Error naming the attribute for values that are none, and for attributes of the fabric
/// that a fluid does not have.
TransportTerms transport_of(const PacketOptions& packet, const Topology& topology, Bytes payload);

}  // namespace lockstep
