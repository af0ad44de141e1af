#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace lockstep {

/// What collectives take from the computations that run beside them on their GPU. A collective's
/// kernel occupies SMs from its launch to its end, also while it only waits for other ranks, and
/// shares the memory's bandwidth: with n collectives of a rank under way its computations run at
///
///     max(kLeastSpeed, 1 - n share)
///
/// of their speed. Messages between two ranks, whose kernels take a channel or two, are free.
/// `share` 0, the default: nothing is taken. docs/models.md names published figures.
struct Interference {
  static constexpr double kLeastSpeed = 0.1;
  double share = 0;  ///< 0 to 1

  double speed(std::int32_t collectives) const;
};

/// The computations of one rank that are under way, and when they end as collectives come and go
/// beside them. Times are rounded up to the picosecond. O(computations under way) a change.
class BesideCollectives {
 public:
  /// A computation of `length` at full speed starts at `begin` (not before now) and ends not before
  /// `at_least`. Returns when it would end if nothing changed.
  Time start(std::int32_t op, Time begin, Time length, Time at_least, const Interference& model);
  /// Its end has an event of this number; those of other numbers are out of date.
  void expect(std::int32_t op, std::int64_t event);
  bool expects(std::int32_t op, std::int64_t event) const;
  void end(std::int32_t op);
  /// A collective begins (+1) or ends (-1): calls moved(op, new end) for each computation.
  template <class Moved>
  void collective(std::int32_t by, Time now, const Interference& model, Moved moved) {
    const double before = model.speed(collectives_);
    collectives_ += by;
    const double speed = model.speed(collectives_);
    if (speed == before) {
      return;
    }
    for (Running& each : running_) {
      settle(each, now, before);
      moved(each.op, end_of(each, speed));
    }
  }

 private:
  struct Running {
    std::int32_t op = 0;
    std::int64_t event = 0;
    Time since, left, at_least;  // left: at full speed, from `since` on
  };
  static void settle(Running& each, Time now, double speed);
  static Time end_of(const Running& each, double speed);

  std::int32_t collectives_ = 0;
  std::vector<Running> running_;
};

}  // namespace lockstep
