#pragma once

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
    const double clock = clock_ + static_cast<double>(load.whole().count_ps());
    std::size_t place = goals_.size();
    goals_.emplace_back();
    for (; place > 0 && goals_[place - 1].clock <= clock; --place) {
      goals_[place] = goals_[place - 1];
    }
    goals_[place] = {transfer, clock};
  }
  Time first_end() const {
    const double ahead = (goals_.back().clock - clock_) * static_cast<double>(goals_.size()) - kTie;
    return since_ + first_whole_ps(ahead);
  }
  std::int32_t end_first(Time now) {
    settle(now);
    const std::int32_t transfer = goals_.back().transfer;
    goals_.pop_back();
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

  double clock_ = 0;  // at since_, in picoseconds
  Time since_;
  std::vector<Goal> goals_;  // the first is the last one; of equal ones the one that came first
};

}  // namespace lockstep
