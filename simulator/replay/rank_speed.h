#pragma once

#include <vector>

#include "base/units.h"

namespace lockstep {

/// A time in which a rank computes slower: from `from` to `until`, and within it, if there is a
/// `period`, the first `length` of each period, the first of which starts `phase` after `from`.
struct SpeedWindow {
  double factor = 1;  ///< on durations; 0: the rank stands still
  Time from;
  Time until = Time::max();
  Time period, length, phase;
};

/// How fast a rank computes at each moment. Windows that overlap multiply.
class RankSpeed {
 public:
  void add(const SpeedWindow& window) { windows_.push_back(window); }
  bool empty() const { return windows_.empty(); }
  const std::vector<SpeedWindow>& windows() const { return windows_; }

  /// How long work of `nominal` takes that starts at `begin`: the d for which the integral of
  /// 1 / factor over begin … begin + d is `nominal`. To the picosecond; without windows `nominal`.
  /// ERRORS: Error where the rank stands still for good. O(windows x boundaries crossed).
  Time duration(Time begin, Time nominal) const;

 private:
  std::vector<SpeedWindow> windows_;
};

}  // namespace lockstep
