#pragma once

#include <span>

#include "simulator/network/network_engine.h"
#include "simulator/replay/replay.h"

namespace lockstep {

/// Tells a network of what is to change. Whether it makes the changes by itself: all of them, or
/// none. ERRORS: Error where it takes some only, which would then be made once and a half.
bool announce(NetworkEngine& network, std::span<const NetworkChange> changes);

}  // namespace lockstep
