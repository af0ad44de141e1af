#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "simulator/network/flow/flow_options.h"

namespace lockstep {

/// The flags about transfers that `simulate` and `collective` share, as typed.
struct NetworkFlags {
  std::string send_latency;  // empty: NCCL's by protocol and hop; simai 6 us
  std::string mtu, header;   // empty: by flavour
  bool pxn = false, spray = false, rail_affinity = false;
};

/// Declares them in a group of the help; `flags` must outlive the parsing.
void define_network_flags(CLI::App& app, NetworkFlags& flags, const char* group);

/// What they say to the flow engine, on top of a flavour's defaults. ERRORS: Error naming the flag.
FlowOptions flow_options(const NetworkFlags& flags, bool simai_flavour);

}  // namespace lockstep
