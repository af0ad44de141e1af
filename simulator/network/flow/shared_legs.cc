#include "simulator/network/flow/shared_legs.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "simulator/network/flow/whole_ps.h"

namespace lockstep {
namespace {

constexpr double kPicoseconds = 1e12;   // a second
constexpr double kRateRounding = 1e-9;  // of a rate
constexpr double kUnbounded = std::numeric_limits<double>::infinity();

}  // namespace

SharedLegs::SharedLegs(std::vector<double> capacities, std::int64_t most)
    : most_(most), ports_(capacities.size()) {
  for (std::size_t port = 0; port < ports_.size(); ++port) {
    ports_[port].capacity = capacities[port];
    ports_[port].level = kUnbounded;
  }
}

double SharedLegs::left(std::int32_t number, Time now) const {
  const State& state = states_[index(number)];
  const double passed = static_cast<double>((now - state.since).count_ps()) / kPicoseconds;
  return std::max(0.0, state.left - state.rate * passed);
}

std::int32_t SharedLegs::start(const Leg& leg, std::span<const std::int32_t> ports, Time now) {
  LOCKSTEP_CHECK(!ports.empty() && ports.size() <= kHops, "a leg has few ports");
  std::int32_t number = 0;
  if (free_.empty()) {
    number = ends_.add();
    states_.emplace_back();
  } else {
    number = free_.back();
    free_.pop_back();
  }
  looks_ += most_;
  State& state = states_[index(number)];
  state.leg = leg;
  state.left = leg.bits;
  state.rate = state.next_rate = 0;
  state.since = now;
  state.hops = static_cast<std::uint8_t>(ports.size());
  state.under_way = true;
  std::ranges::copy(ports, state.ports.begin());
  bool alone = true;
  double least = kUnbounded;
  for (const std::int32_t port : ports) {
    Port& each = ports_[index(port)];
    alone = alone && each.users.empty();
    if (each.capacity < least) {
      least = each.capacity;
      state.bottleneck = port;
    }
    each.users.push_back(number);
  }
  if (alone) {
    take_rate(number, least, now);
  } else {
    state.bottleneck = -1;
    note(ports.front());
  }
  return number;
}

void SharedLegs::take_ended(Time now, std::vector<std::int32_t>& ended) {
  while (ends_.first() == now) {
    ended.push_back(ends_.which());
    end(ended.back());
  }
}

void SharedLegs::end(std::int32_t leg) {
  looks_ += most_;
  states_[index(leg)].under_way = false;
  ends_.set(leg, Time::max());
  free_.push_back(leg);
  for (const std::int32_t port : ports(leg)) {
    std::vector<std::int32_t>& users = ports_[index(port)].users;
    *std::ranges::find(users, leg) = users.back();
    users.pop_back();
    if (!users.empty()) {
      note(port);
    }
  }
}

void SharedLegs::set_capacity(std::int32_t port, double capacity) {
  ports_[index(port)].capacity = capacity;
  note(port);
}

void SharedLegs::note(std::int32_t port) {
  if (!ports_[index(port)].changed) {
    ports_[index(port)].changed = true;
    changed_.push_back(port);
  }
}

bool SharedLegs::settle(Time now) {
  if (changed_.empty()) {
    return true;
  }
  bool few = true;
  for (bool more = join_over_changed(); more && few; more = join_after_fill()) {
    few = fill();
  }
  for (const std::int32_t port : changed_) {
    ports_[index(port)].changed = false;
  }
  changed_.clear();
  for (const std::int32_t leg : legs_) {
    State& state = states_[index(leg)];
    state.joined = false;
    if (few) {
      take_rate(leg, state.next_rate, now);
    }
  }
  for (const std::int32_t port : where_) {
    ports_[index(port)].listed = false;
    ports_[index(port)].level = kUnbounded;
  }
  legs_.clear();
  where_.clear();
  return few;
}

void SharedLegs::join(std::int32_t leg) {
  states_[index(leg)].joined = true;
  legs_.push_back(leg);
  for (const std::int32_t port : ports(leg)) {
    if (!ports_[index(port)].listed) {
      ports_[index(port)].listed = true;
      where_.push_back(port);
    }
  }
}

/// Whether the port that limited it does so still, as nothing has changed there.
bool SharedLegs::keeps_bottleneck(const State& state) const {
  if (state.next_rate == 0 || state.bottleneck < 0) {
    return false;  // it has just come
  }
  const Port& before = ports_[index(state.bottleneck)];
  return !before.changed && !before.listed;
}

/// Whether one of its ports is full with nothing faster on it.
bool SharedLegs::find_bottleneck(std::int32_t leg) {
  State& state = states_[index(leg)];
  const double rate = state.next_rate;
  for (const std::int32_t number : ports(leg)) {
    const Port& port = ports_[index(number)];
    looks_ -= std::ssize(port.users);
    double used = 0, most = 0;
    for (const std::int32_t user : port.users) {
      used += states_[index(user)].next_rate;
      most = std::max(most, states_[index(user)].next_rate);
    }
    if (used >= port.capacity * (1 - kRateRounding) && rate >= most * (1 - kRateRounding)) {
      state.bottleneck = number;
      return true;
    }
  }
  state.bottleneck = -1;
  return false;
}

void SharedLegs::measure(std::int32_t number) {
  Port& port = ports_[index(number)];
  port.free = port.capacity;
  for (const std::int32_t user : port.users) {
    port.free -= states_[index(user)].next_rate;
  }
}

/// Of what is under way over a port. What is faster than those that it limits has none, and of what
/// is too much for it nothing has.
void SharedLegs::join_without_bottleneck(const Port& port) {
  const double most = most_with_bottleneck(port);
  for (const std::int32_t user : port.users) {
    const State& state = states_[index(user)];
    if (!state.joined &&
        (state.next_rate > most ||
         !(keeps_bottleneck(state) || (state.next_rate > 0 && find_bottleneck(user))))) {
      join(user);
    }
  }
}

double SharedLegs::most_with_bottleneck(const Port& port) {
  return port.free < -port.capacity * kRateRounding ? 0 : port.level * (1 + kRateRounding);
}

/// Of what is under way over ports that have changed; whether there is any.
bool SharedLegs::join_over_changed() {
  for (const std::int32_t number : changed_) {
    measure(number);
  }
  for (const std::int32_t number : changed_) {
    join_without_bottleneck(ports_[index(number)]);
  }
  return !legs_.empty();
}

/// The same after fill(), over the ports of those that have new rates: what these have taken the
/// bottleneck from is limited by one of the ports, or too fast for one.
bool SharedLegs::join_after_fill() {
  const std::size_t before = legs_.size();
  for (std::size_t i = 0, count = where_.size(); i < count; ++i) {  // where_ grows
    const Port& port = ports_[index(where_[i])];
    if (port.limits || port.fastest > most_with_bottleneck(port)) {
      join_without_bottleneck(port);
    }
  }
  return legs_.size() > before;
}

/// Finds the rates of legs_, which get what the others leave: all rise alike, and those over a port
/// that is full stay at that. False if that costs too much.
bool SharedLegs::fill() {
  for (const std::int32_t number : where_) {
    Port& port = ports_[index(number)];
    port.free = port.capacity;
    port.waiting = 0;
    port.level = kUnbounded;
    port.fastest = 0;
    port.limits = false;
    for (const std::int32_t user : port.users) {
      const State& state = states_[index(user)];
      if (state.joined) {
        ++port.waiting;
      } else {
        port.free -= state.next_rate;
        port.fastest = std::max(port.fastest, state.next_rate);
        port.limits = port.limits || state.bottleneck == number;
      }
    }
  }
  for (const std::int32_t leg : legs_) {
    states_[index(leg)].next_rate = -1;
  }
  for (std::size_t fixed = 0; fixed < legs_.size();) {
    looks_ -= std::ssize(where_);
    if (looks_ < 0) {
      return false;
    }
    std::int32_t fullest = where_.front();
    double level = kUnbounded;
    for (const std::int32_t number : where_) {
      const Port& port = ports_[index(number)];
      if (port.waiting > 0 && port.free < level * port.waiting) {
        level = port.free / port.waiting;
        fullest = number;
      }
    }
    constexpr double kLeast = 1e-12;  // of a port; below it is rounding
    level = std::max(level, ports_[index(fullest)].capacity * kLeast);
    ports_[index(fullest)].level = level;
    for (const std::int32_t user : users(fullest)) {
      State& state = states_[index(user)];
      if (state.next_rate >= 0) {
        continue;
      }
      state.next_rate = level;
      state.bottleneck = fullest;
      ++fixed;
      for (const std::int32_t port : ports(user)) {
        ports_[index(port)].free -= level;
        --ports_[index(port)].waiting;
      }
    }
  }
  return true;
}

void SharedLegs::take_rate(std::int32_t leg, double rate, Time now) {
  State& state = states_[index(leg)];
  state.next_rate = rate;
  if (rate == state.rate) {
    return;
  }
  state.left = left(leg, now);
  state.since = now;
  state.rate = rate;
  constexpr double kTie = 1e-3;  // ps, what rounding may add up to
  ends_.set(leg, now + first_whole_ps(state.left / rate * kPicoseconds - kTie));
}

}  // namespace lockstep
