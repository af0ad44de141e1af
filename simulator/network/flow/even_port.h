#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "simulator/network/flow/turn_port.h"
#include "simulator/network/flow/whole_ps.h"

namespace lockstep {

/// A port that its transfers share evenly, as the max-min fair system of a single constraint: each
/// ends when the port's clock, which goes at 1 / (number of transfers), has gone on by what it
/// would take alone (the virtual time of fair queueing: Parekh, Gallager, IEEE/ACM ToN 1993,
/// section II). Times to the picosecond, rounded up. As TurnPort. O(transfers).
class EvenPort {
 public:
  bool empty() const { return goals_.empty(); }
  void start(std::int32_t transfer, const LegLoad& load, Time now) {
    settle(now);
    goals_.push_back({transfer, clock_ + static_cast<double>(load.whole().count_ps())});
  }
  Time first_end() const {
    const double ahead = (first()->clock - clock_) * static_cast<double>(goals_.size()) - kTie;
    return since_ + first_whole_ps(ahead);
  }
  std::int32_t end_first(Time now) {
    settle(now);
    const auto gone = first();
    const std::int32_t transfer = gone->transfer;
    goals_.erase(gone);
    return transfer;
  }
  void stretch(double factor, Time now) {
    settle(now);
    for (Goal& goal : goals_) {
      goal.clock = clock_ + (goal.clock - clock_) * factor;
    }
  }

 private:
  static constexpr double kTie = 1e-3;  ///< ps, what rounding may add up to
  struct Goal {
    std::int32_t transfer;
    double clock;
  };
  void settle(Time now) {
    clock_ = goals_.empty() ? 0
                            : clock_ + static_cast<double>((now - since_).count_ps()) /
                                           static_cast<double>(goals_.size());
    since_ = now;
  }
  std::vector<Goal>::const_iterator first() const {
    return std::ranges::min_element(goals_, {}, &Goal::clock);
  }

  double clock_ = 0;  // at since_, in picoseconds
  Time since_;
  std::vector<Goal> goals_;
};

}  // namespace lockstep
