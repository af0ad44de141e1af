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
///
/// Where it was `measured` (lockstep profile --interference), `share` does not count: NCCL launches
/// a thread block for each channel, and with so many blocks of collectives under way computations
/// run at what was measured beside so many, on straight lines between the points and from full
/// speed beside none. Beside more than were measured they run as beside the most.
struct Interference {
  static constexpr double kLeastSpeed = 0.1;
  struct Point {
    std::int32_t blocks = 0;  ///< from 1
    double speed = 1;         ///< above 0, at most 1
    friend bool operator==(const Point&, const Point&) = default;
  };
  double share = 0;                  ///< 0 to 1
  std::vector<Point> measured = {};  ///< blocks ascending

  bool any() const { return share > 0 || !measured.empty(); }
  /// Beside so many collectives, or, where it was measured, beside so many thread blocks of them.
  double speed(std::int32_t taken) const;
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
  /// How many are under way beside this rank's computations, of which there is one at least; else
  /// 0.
  std::int32_t beside() const { return running_.empty() ? 0 : taken_; }
  /// Collectives begin (+) or end (-), so many of them or of their thread blocks: calls
  /// moved(op, new end) for each computation.
  template <class Moved>
  void collective(std::int32_t by, Time now, const Interference& model, Moved moved) {
    const double before = model.speed(taken_);
    taken_ += by;
    const double speed = model.speed(taken_);
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

  std::int32_t taken_ = 0;
  std::vector<Running> running_;
};

}  // namespace lockstep
