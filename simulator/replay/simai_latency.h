#pragma once

#include "base/units.h"

namespace lockstep {

/// SimAI's own times (its MemBus and PacketBundle): the bus before every transfer and before every
/// receive that a rank posts, and three memory accesses of 10 ns before one that adds.
inline constexpr Time kSimaiBusLatency = Time::ns(10);
inline constexpr Time kSimaiReduceLatency = Time::ns(30);

}  // namespace lockstep
