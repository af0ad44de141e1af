#pragma once

#include <cstdint>

#include "base/units.h"
#include "topologies/routing.h"

namespace lockstep {

/// How a replay may recall collectives instead of simulating them again (recalled_runs.h).
struct RecallOptions {
  /// The part of the time so far by which any end may be off.
  double error_budget = 0;
  /// Ranks that enter early may be taken to wait for the last one. Not where ranks that begin at
  /// one moment keep out of each other's way and others do not (SimAI's rings).
  bool wait_for_last = true;
  // Of the network that carries the rest.
  RouteOptions routes;
  bool fresh_ports = false;  ///< every transfer draws its way anew
  Bytes payload{4096}, header{62}, ack{60};
  std::int64_t ack_interval = 4;  ///< packets
  double least_share = 1;         ///< of their rates that links carry
};

}  // namespace lockstep
