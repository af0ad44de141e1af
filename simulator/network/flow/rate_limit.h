#pragma once

#include <limits>

namespace lockstep {

/// Rates, in bits per second, that the flows of a connection keep to.
struct RateLimit {
  static constexpr double kNone = std::numeric_limits<double>::infinity();

  double fresh = kNone;   ///< of a flow that comes when the one before has left
  double steady = kNone;  ///< of one that follows another without a gap
  friend bool operator==(const RateLimit&, const RateLimit&) = default;
};

}  // namespace lockstep
