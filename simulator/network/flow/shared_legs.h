#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "simulator/network/flow/next_of.h"

namespace lockstep {

/// The parts of transfers that are over several ports, which they share max-min fairly, where few
/// meet at a time.
///
///     ends    when the integral of its rate reaches its bits, rounded up to the picosecond
///
/// Rates are max-min fair if and only if each leg has a bottleneck: a port that is full and on
/// which no other leg is faster (Bertsekas, Gallager: Data Networks, 1992, section 6.5.2). When
/// legs come or go, those that have none any more get new rates by progressive filling of what the
/// others leave; others that have none then join them, until all have one. FluidNetwork has the
/// same rates for any number of legs.
///
/// Complexity: a start and an end take kMost looks at legs on ports in the mean, or settle() gives
/// up. No allocation once the arrays have grown.
class SharedLegs {
 public:
  static constexpr std::size_t kHops = 6;      ///< ports of a leg at most
  static constexpr std::int64_t kMost = 1000;  ///< looks that a start and an end may cost
  struct Leg {
    std::int32_t transfer = -1;
    double bits = 0;
    double packet = 1;  ///< what its packets are of a full one
  };

  /// `capacities`: by port, in bits per second.
  explicit SharedLegs(std::vector<double> capacities, std::int64_t most = kMost);

  /// What has a leg from now on, over ports of which none is twice among them. Returns its number,
  /// which is free again when it has ended. PRECONDITION: 1 to kHops ports; now is not before that
  /// of an earlier call, nor after next().
  std::int32_t start(const Leg& leg, std::span<const std::int32_t> ports, Time now);
  void set_capacity(std::int32_t port, double capacity);
  /// After all that happens now: rates change. False if that has cost too much so far; then the
  /// caller is to take all that is under way elsewhere.
  bool settle(Time now);
  /// Whether nothing has come, gone or changed since.
  bool is_settled() const { return changed_.empty(); }
  /// When the next one ends; Time::max() where nothing is under way. PRECONDITION: settled.
  Time next() const { return ends_.first(); }
  /// Adds those that end now. What they were stays readable until the next start; the others keep
  /// their rates until settle().
  void take_ended(Time now, std::vector<std::int32_t>& ended);

  const Leg& leg(std::int32_t number) const { return states_[index(number)].leg; }
  std::span<const std::int32_t> ports(std::int32_t number) const {
    const State& state = states_[index(number)];
    return {state.ports.data(), state.hops};
  }
  /// Bits that have not left.
  double left(std::int32_t number, Time now) const;
  double rate(std::int32_t number) const { return states_[index(number)].rate; }
  /// Those that are under way over a port.
  std::span<const std::int32_t> users(std::int32_t port) const { return ports_[index(port)].users; }
  /// Calls f(number) for each that is under way.
  template <class F>
  void for_each(F f) const {
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (states_[i].under_way) {
        f(static_cast<std::int32_t>(i));
      }
    }
  }

 private:
  struct State {
    Leg leg;
    double left = 0;  ///< bits, at `since`
    double rate = 0;  ///< bits per second since then
    Time since;
    double next_rate = 0;  ///< while rates are found
    std::array<std::int32_t, kHops> ports{};
    std::int32_t bottleneck = -1;  ///< one of them; -1: not known
    std::uint8_t hops = 0;
    bool under_way = false;
    bool joined = false;  ///< legs_
  };
  struct Port {
    double capacity = 0;
    std::vector<std::int32_t> users;
    bool changed = false, listed = false;
    // While rates are found:
    double free = 0;           ///< of the capacity; less than nothing where too much is used
    std::int32_t waiting = 0;  ///< users without a rate
    double level = 0;          ///< of those that it limits, else unbounded
    double fastest = 0;        ///< of users that keep their rates
    bool limits = false;       ///< one of those
  };

  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }
  void end(std::int32_t leg);
  void note(std::int32_t port);
  void join(std::int32_t leg);
  bool keeps_bottleneck(const State& state) const;
  bool find_bottleneck(std::int32_t leg);
  void measure(std::int32_t port);
  static double most_with_bottleneck(const Port& port);
  void join_without_bottleneck(const Port& port);
  bool join_over_changed();
  bool join_after_fill();
  bool fill();
  void take_rate(std::int32_t leg, double rate, Time now);

  std::int64_t most_;
  std::int64_t looks_ = 0;  ///< that are left
  std::vector<State> states_;
  std::vector<std::int32_t> free_;
  std::vector<Port> ports_;
  NextOf ends_;
  std::vector<std::int32_t> changed_;       // ports, since settle()
  std::vector<std::int32_t> legs_, where_;  // scratch: those that get new rates, and their ports
};

}  // namespace lockstep
