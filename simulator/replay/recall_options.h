#pragma once

#include <cstdint>

#include "base/units.h"
#include "topologies/routing.h"

namespace lockstep {

/// How a replay may recall collectives instead of simulating them again (recalled_runs.h).
struct RecallOptions {
  /// The part of the time so far by which any end may be off.
  double error_budget = 0;
  // Of the network that carries the rest.
  RouteOptions routes;
  bool fresh_ports = false;  ///< every transfer draws its way anew
  Bytes payload{4096}, header{62}, ack{60};
  std::int64_t ack_interval = 4;  ///< packets
};

}  // namespace lockstep
