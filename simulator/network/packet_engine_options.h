#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "topologies/routing.h"

namespace lockstep {

/// How the packet engine models the fabric. Everything but what stands here by name is an attribute
/// of the ns-3 module's ns3::Fabric (ns3-module/doc/fabric.rst).
struct PacketOptions {
  /// One row: ports of this rate mark between kmin and kmax.
  struct EcnRow {
    Bandwidth rate;
    Bytes kmin, kmax;
    double pmax = 0;
  };
  /// The links between two nodes lose packets for a while. Where all are lost (the links are down),
  /// connections take another way `rerouting` later, if there is one, and come back likewise.
  struct LinkFault {
    NodeId a, b;
    Time from, until = Time::max();
    double loss = 1;  ///< probability, 1: down
    /// Of the SimAI.conf that names it, for messages.
    std::string file;
    std::size_t line = 0;
  };
  std::vector<LinkFault> faults;
  Time rerouting = Time::us(1000);
  /// Attributes of ns3::Fabric, such as {"Payload", "9000"}.
  std::map<std::string, std::string> fabric;
  /// none, dcqcn, hpcc, timely, swift, dctcp or receiver; and attributes of its type.
  std::string congestion = "dcqcn";
  std::map<std::string, std::string> congestion_attributes;
  /// What choose_congestion() gives a congestion control of each name: a flavour's or a
  /// SimAI.conf's.
  std::map<std::string, std::map<std::string, std::string>> attributes_of;
  /// Packets have SimAI's headers, which depend on the congestion control (choose_congestion()).
  bool simai_headers = false;
  std::vector<EcnRow> ecn;
  /// SimAI's rule: a packet is confirmed when it crosses a multiple of so many bytes; none:
  /// fabric's AckInterval as it is.
  std::optional<Bytes> ack_bytes;
  /// A new source port, hence a new ECMP draw and a new queue pair, for every transfer (SimAI).
  bool fresh_ports = false;
  /// The window of all queue pairs is the largest bandwidth-delay product between two GPUs (SimAI).
  bool global_window = false;
  RouteOptions routes;
  std::uint64_t seed = 1;
  /// The caller's promise: start() is called with times at least so far after now(). The engine
  /// then runs ahead and answers many calls at once. 0 is always right and slow.
  Time lookahead;
  /// Files that get SimAI's records, if named: one line a transfer, one line a pause or resume.
  std::string fct_file, pfc_file;
  /// A file that gets samples over time, if named (docs/formats/samples.md), and the time between.
  std::string samples_file;
  Time sample_interval = Time::us(10);
  /// Path of lockstep-packet; empty: beside the running program, else on PATH.
  std::string program;
};

/// What data and ACKs are on the wire.
struct WireSizes {
  Bytes payload, header;      ///< of a full packet
  Bytes ack;                  ///< of an ACK
  std::int64_t ack_interval;  ///< packets that an ACK confirms
};

/// Those of the options, by default those of ns3::Fabric. ERRORS: Error naming an attribute that is
/// no number in its range.
WireSizes wire_sizes(const PacketOptions& options);

/// Sets fabric's AckInterval to what ack_bytes, if any, are in packets of fabric's Payload.
void take_ack_bytes(PacketOptions& options);

/// Sets the congestion control, its attributes to those that the options have for it, and SimAI's
/// sizes of headers and ACKs where they are wanted.
void choose_congestion(PacketOptions& options, const std::string& name);

/// The ECN maps that SimAI ships.
std::vector<PacketOptions::EcnRow> simai_ecn_rows();

/// SimAI's packet sizes, ACK rule, window, ports and clock, and its parameters of the congestion
/// controls that it has.
PacketOptions simai_packet_options();

}  // namespace lockstep
