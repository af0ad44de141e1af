#pragma once

#include <cstdint>
#include <vector>

#include "simulator/network/flow/next_of.h"
#include "simulator/network/flow/turn_port.h"

namespace lockstep {

/// The parts of transfers that are over one port alone, whose ends depend on what else is on that
/// port and on nothing else. `Port` is a TurnPort or an EvenPort.
///
/// Complexity: a start and an end O(transfers of the port + log(ports)).
template <class Port>
class PortLegs {
 public:
  explicit PortLegs(std::size_t ports) : number_(ports, -1) {}

  /// PRECONDITION: now is not before that of an earlier call, nor after next().
  void start(std::int32_t port, std::int32_t transfer, const LegLoad& load, Time now) {
    std::int32_t& number = number_[index(port)];
    if (number < 0) {
      number = ends_.add();
      used_.push_back({port, {}});
    }
    Port& used = used_[index(number)].port;
    used.start(transfer, load, now);
    ends_.set(number, used.first_end());
  }
  /// From now on the port takes so many times as long for everything.
  void stretch(std::int32_t port, double factor, Time now) {
    const std::int32_t number = number_[index(port)];
    if (number >= 0 && !used_[index(number)].port.empty()) {
      used_[index(number)].port.stretch(factor, now);
      ends_.set(number, used_[index(number)].port.first_end());
    }
  }
  /// When the next one ends; Time::max() where nothing is under way.
  Time next() const { return ends_.first(); }
  /// Calls f(transfer, port) for those that end now, which starts none. PRECONDITION: now is not
  /// after next().
  template <class F>
  void take_ended(Time now, F f) {
    while (next() <= now) {
      const std::int32_t number = ends_.which();
      Used& used = used_[index(number)];
      Time end = now;
      while (end == now) {
        f(used.port.end_first(now), used.id);
        end = used.port.empty() ? Time::max() : used.port.first_end();
      }
      ends_.set(number, end);
    }
  }

 private:
  struct Used {
    std::int32_t id;
    Port port;
  };

  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }

  std::vector<std::int32_t> number_;  // per port: in used_, -1 if nothing has been on it
  std::vector<Used> used_;
  NextOf ends_;
};

}  // namespace lockstep
