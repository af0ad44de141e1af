#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"

namespace lockstep {

/// The first whole picosecond that is not before so many; beyond what a sum of times may be it
/// stays at that, and the sum says so.
inline Time first_whole_ps(double ps) {
  constexpr double kMost = 9.2e18;
  const double bounded = std::min(std::max(ps, 0.0), kMost);
  const auto below = static_cast<std::int64_t>(bounded);
  return Time::ps(below + (static_cast<double>(below) < bounded ? 1 : 0));
}

}  // namespace lockstep
