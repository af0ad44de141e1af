#include "simulator/replay/rank_speed.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace lockstep {
namespace {

struct State {
  bool active = false;
  Time next = Time::max();  ///< when this may change
};

State state_of(const SpeedWindow& window, Time at) {
  if (at >= window.until) {
    return {};
  }
  if (at < window.from) {
    return {false, window.from};
  }
  if (window.period <= Time()) {
    return {true, window.until};
  }
  const Time first = window.from + window.phase;
  if (at < first) {
    return {false, std::min(first, window.until)};
  }
  const std::int64_t turn = (at - first).count_ps() / window.period.count_ps();
  const Time start = first + window.period * turn;
  const bool active = at - start < window.length;
  return {active, std::min(start + (active ? window.length : window.period), window.until)};
}

}  // namespace

Time RankSpeed::duration(Time begin, Time nominal) const {
  if (windows_.empty() || nominal <= Time()) {
    return nominal;
  }
  Time now = begin;
  auto left = static_cast<double>(nominal.count_ps());
  for (;;) {
    double factor = 1;
    Time next = Time::max();
    for (const SpeedWindow& window : windows_) {
      const State state = state_of(window, now);
      factor *= state.active ? window.factor : 1;
      next = std::min(next, state.next);
    }
    if (next == Time::max()) {
      if (factor == 0) {
        throw Error("a rank stands still and never goes on");
      }
      return now - begin + Time::ps(std::llround(left * factor));
    }
    const double room = static_cast<double>((next - now).count_ps());
    if (factor > 0 && left * factor <= room) {
      return now - begin + Time::ps(std::llround(left * factor));
    }
    left -= factor > 0 ? room / factor : 0;
    now = next;
  }
}

}  // namespace lockstep
