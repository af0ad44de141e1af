#pragma once

#include <string>

#include "simulator/network/packet_engine.h"

namespace lockstep::testing {

/// The packet engine that was built beside the test, without congestion control.
inline PacketOptions options_here() {
  PacketOptions options;
  options.program = std::string(LOCKSTEP_BINARY) + "-packet";
  options.congestion = "none";
  return options;
}

}  // namespace lockstep::testing
