#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"
#include "simulator/network/flow/transport_terms.h"
#include "simulator/network/network_engine.h"
#include "topologies/routing.h"

namespace lockstep {

/// How the flow engine turns a transfer into wire bytes and latency.
struct FlowOptions {
  Bytes payload{4096};  ///< data bytes of a full packet (MTU)
  Bytes header{
      62};  ///< wire bytes a packet adds: RoCEv2 Ethernet 14, IP 20, UDP 8, BTH 12, ICRC 4, FCS 4
  /// Delivered when the last ACK is back at the source (SimAI) instead of when the destination has
  /// the data (NCCL).
  bool wait_for_ack = false;
  Bytes ack_size{60};
  /// A new source port, hence a new ECMP draw, for every transfer (SimAI) instead of one for each
  /// (source, destination, channel), as NCCL's persistent connections have. See
  /// FlowEngine::meet_by_packets().
  bool fresh_ports = false;
  std::uint64_t seed = 1;  ///< of what their packets wait for each other
  /// A full packet's transmission time is cut to whole nanoseconds (SimAI's ns-3 clock).
  bool whole_ns = false;
  /// Of their rates, what links carry within servers and outside them, where a cluster in use
  /// carries less than its links are called.
  double local_share = 1, network_share = 1;
  RouteOptions routes;
  std::vector<LinkFault> faults;  ///< links that fail in mid-run
  /// What hosts and switches do beside sharing links; without it rates are max-min fair and nothing
  /// else holds a transfer back (docs/models.md).
  std::optional<TransportTerms> transport;

  /// Whether a run can be folded by symmetry and its repetition skipped: ways, sizes and rates
  /// change with nothing but starts and ends of transfers.
  bool is_steady() const {
    return !fresh_ports && faults.empty() && !(transport && transport->has_law());
  }
};

/// SimAI's packet sizes, ACK rule, ports and clock (payload 9000 B, header 52 B).
FlowOptions simai_flow_options();

}  // namespace lockstep
