#pragma once

#include "base/units.h"

namespace lockstep {

/// The double nearest to the time, so that 1.5 ms is written 0.0015.
inline double seconds(Time time) { return static_cast<double>(time.count_ps()) / 1e12; }

}  // namespace lockstep
