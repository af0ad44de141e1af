#pragma once

#include "base/units.h"
#include "simulator/network/flow/transport_terms.h"

namespace lockstep {

/// The sender's side of DCQCN for one queue pair (Zhu et al., SIGCOMM 2015, section 5), on the mean
/// of marks instead of each. With R the rate, T the target, a the estimate of congestion:
///
///     a mark came since the last look, at each decrease_interval after it:  T = R, R *= 1 - a / 2
///     each alpha_interval:           a = (1 - g) a + g P(a mark came in it)
///     each increase_interval since the last decrease:
///         the first fast_recovery times  R = (R + T) / 2
///         then                           T += additive, later hyper; the same R
///
/// T stays at a decrease that comes before any increase, unless clamp_target. That is the packet
/// engine's machine (ns3-module/model/dcqcn-congestion-control.h) but for P in place of draws.
class DcqcnPoint {
 public:
  explicit DcqcnPoint(double line_rate = 0) : rate_(line_rate), target_(line_rate) {}

  double rate() const { return rate_; }
  /// Whether it is back at the line rate with no mark pending.
  bool is_idle() const { return increase_ == Time::max() && !marked_; }
  /// Moves to `now`; in between a packet was marked with `hazard` per second. `draw` is a random
  /// number in (0, 1) for whether one came, used where none had since the last look.
  void advance(const DcqcnParameters& parameters, double line_rate, Time now, double hazard,
               double draw);

 private:
  void expire(const DcqcnParameters& parameters, double line_rate, Time now);

  double rate_, target_, alpha_ = 1;
  Time now_, decrease_, increase_ = Time::max();
  std::int64_t stage_ = 0;
  bool begun_ = false, marked_ = false;
};

}  // namespace lockstep
