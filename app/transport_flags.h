#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/cli_fwd.h"
#include "simulator/network/flow/flow_options.h"
#include "simulator/network/packet_engine_options.h"

namespace lockstep {

/// The flags that describe what hosts and switches do, as typed. The packet engine always models
/// that, by defaults of its own; the flow engine where one of them is given.
struct TransportFlags {
  std::string conf, congestion;
  std::vector<std::string> fabric, congestion_settings;  // NAME=VALUE
  std::string samples, sample_interval;                  // packet engine

  bool only_conf() const {
    return congestion.empty() && fabric.empty() && congestion_settings.empty();
  }
  bool any() const { return !conf.empty() || !only_conf(); }
};

/// Declares them in a group of the help; `flags` must outlive the parsing.
void define_transport_flags(CLI::App& app, TransportFlags& flags, const char* group);
/// Those about what the packet engine writes over time.
void define_sample_flags(CLI::App& app, TransportFlags& flags, const char* group);

struct NetworkFlags;

/// What they and the other flags about transfers say to the packet engine, on top of a flavour's
/// defaults. `warnings` gets those of a SimAI.conf. ERRORS: Error naming the flag, or the file and
/// line.
PacketOptions packet_options(const NetworkFlags& flags, bool simai_flavour,
                             const Topology& topology, std::vector<std::string>& warnings);

/// Warns of ports of switches that mark whatever waits since the ECN maps have no row for them.
void tell_unmapped_rates(const PacketOptions& packet, const Topology& topology,
                         std::vector<std::string>& warnings);

/// The same for the flow engine: gives `flow` a transport if one of them was typed. Of flavour
/// simai a SimAI.conf alone does not: what sets SimAI's packets apart from a fluid are turns, not
/// windows.
void add_transport(const NetworkFlags& flags, bool simai_flavour, const Topology& topology,
                   std::uint64_t seed, FlowOptions& flow, std::vector<std::string>& warnings);

}  // namespace lockstep
