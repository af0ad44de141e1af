#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"

namespace lockstep {

/// The pace of a collective of which all connections carry equally many transfers, one after the
/// other: how long a step takes once it is under way, from the moments at which transfer 0, 1, … of
/// the connections were delivered.
///
/// With M(j) the mean over connections of the delivery of transfer j, and the steps from a quarter
/// of those seen on in 6 blocks of equal length, the pace is the mean of the blocks' paces. K
/// further steps take K times that, within
///
///     K (2.57 s / sqrt(6) + d + g) + b sqrt(1 + K / J)
///
/// where s is the standard deviation of the blocks' paces (2.57: Student's t for 95 % and 5 degrees
/// of freedom); d what the pace changes from the middle of the blocks to that of the K steps, if it
/// goes on as on the line of least squares through the blocks (messages that meet in convoys become
/// slower for as long as a run lasts); g how fast the last connection falls behind the mean, per
/// step, in the second half of what was seen, as if it went on so; and b how far it was behind at
/// most in that half, J steps in all, for single ones wander about the mean.
class SteadyPace {
 public:
  struct Estimate {
    Time time, error;  ///< of so many steps
  };

  SteadyPace(std::int32_t connections, std::int32_t steps);

  /// Transfer `step` of one connection is delivered. Whether it is that of all now. O(1).
  bool add(std::int32_t step, Time now);
  std::int32_t connections() const { return connections_; }
  /// Steps that all connections have made.
  std::int32_t made() const { return made_; }
  /// Nothing before 24 steps and a quarter of all: what holds up a ring comes back after half of
  /// its steps.
  std::optional<Estimate> estimate(std::int32_t steps) const;

 private:
  struct Step {
    std::int32_t delivered = 0;
    double sum = 0;  // ps
    Time last;
  };
  double mean(std::int32_t step) const;

  std::int32_t connections_, made_ = 0;
  std::vector<Step> steps_;
};

}  // namespace lockstep
