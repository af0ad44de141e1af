#include "simulator/replay/interference.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/error.h"

namespace lockstep {

double Interference::speed(std::int32_t taken) const {
  if (measured.empty()) {
    return std::max(kLeastSpeed, 1 - share * taken);
  }
  const auto above = std::ranges::lower_bound(measured, taken, {}, &Point::blocks);
  if (above == measured.end()) {
    return measured.back().speed;
  }
  const Point below = above == measured.begin() ? Point{} : *std::prev(above);
  return below.speed +
         (above->speed - below.speed) * (taken - below.blocks) / (above->blocks - below.blocks);
}

Time BesideCollectives::start(std::int32_t op, Time begin, Time length, Time at_least,
                              const Interference& model) {
  running_.push_back({op, 0, begin, length, at_least});
  return end_of(running_.back(), model.speed(taken_));
}

void BesideCollectives::expect(std::int32_t op, std::int64_t event) {
  const auto found = std::ranges::find(running_, op, &Running::op);
  LOCKSTEP_CHECK(found != running_.end(), "only what is under way ends");
  found->event = event;
}

bool BesideCollectives::expects(std::int32_t op, std::int64_t event) const {
  const auto found = std::ranges::find(running_, op, &Running::op);
  return found != running_.end() && found->event == event;
}

void BesideCollectives::end(std::int32_t op) {
  std::erase_if(running_, [&](const Running& each) { return each.op == op; });
}

void BesideCollectives::settle(Running& each, Time now, double speed) {
  if (now <= each.since) {
    return;  // it has not begun
  }
  const double done = static_cast<double>((now - each.since).count_ps()) * speed;
  each.left = std::max(Time(), each.left - Time::ps(static_cast<std::int64_t>(done)));
  each.since = now;
}

Time BesideCollectives::end_of(const Running& each, double speed) {
  const double left = std::ceil(static_cast<double>(each.left.count_ps()) / speed);
  return std::max(each.since + Time::ps(static_cast<std::int64_t>(left)), each.at_least);
}

}  // namespace lockstep
