#include "simulator/network/flow/dcqcn_point.h"

#include <algorithm>
#include <cmath>

namespace lockstep {

void DcqcnPoint::advance(const DcqcnParameters& parameters, double line_rate, Time now,
                         double hazard, double draw) {
  const double elapsed = (now - now_).seconds();
  if (begun_ && elapsed > 0) {
    const double interval = parameters.alpha_interval.seconds();
    const double kept = std::pow(1 - parameters.gain, elapsed / interval);
    alpha_ = kept * alpha_ + (1 - kept) * -std::expm1(-hazard * interval);
  }
  const bool comes = !marked_ && draw < -std::expm1(-hazard * elapsed);
  if (comes) {
    if (!begun_) {
      begun_ = true;
      alpha_ = 1;
      target_ = rate_;
      decrease_ = now;
    }
    marked_ = true;
    if (decrease_ <= now) {
      const std::int64_t interval = parameters.decrease_interval.count_ps();
      decrease_ += Time::ps(((now - decrease_).count_ps() / interval + 1) * interval);
    }
  }
  now_ = now;
  expire(parameters, line_rate, now);
}

void DcqcnPoint::expire(const DcqcnParameters& parameters, double line_rate, Time now) {
  constexpr double kClose = 1e-6;
  while (true) {
    const Time decrease = marked_ ? decrease_ : Time::max();
    const Time next = std::min(decrease, increase_);
    if (next > now) {
      return;
    }
    if (decrease == next) {
      if (parameters.clamp_target || stage_ > 0) {
        target_ = rate_;
      }
      rate_ = std::max(parameters.least, rate_ * (1 - alpha_ / 2));
      stage_ = 0;
      marked_ = false;
      increase_ = next + parameters.increase_interval;
      continue;
    }
    if (stage_ >= parameters.fast_recovery) {
      target_ = std::min(
          line_rate,
          target_ + (stage_ == parameters.fast_recovery ? parameters.additive : parameters.hyper));
    }
    rate_ = (rate_ + target_) / 2;
    ++stage_;
    if (line_rate - rate_ < kClose * line_rate) {
      rate_ = line_rate;
      increase_ = Time::max();
    } else {
      increase_ = next + parameters.increase_interval;
    }
  }
}

}  // namespace lockstep
