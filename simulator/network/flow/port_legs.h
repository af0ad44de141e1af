#pragma once

#include <cstdint>
#include <vector>

#include "simulator/network/flow/stamp_queue.h"
#include "simulator/network/flow/turn_port.h"

namespace lockstep {

/// The parts of transfers that are over one port alone, whose ends depend on what else is on that
/// port and on nothing else. `Port` is a TurnPort or an EvenPort.
///
/// Complexity: a start and an end O(transfers of the port) and a queue operation.
template <class Port>
class PortLegs {
 public:
  struct Ended {
    std::int32_t transfer, port;
  };

  explicit PortLegs(std::size_t ports) : ports_(ports) {}

  /// PRECONDITION: now is not before that of an earlier call, nor after next().
  void start(std::int32_t port, std::int32_t transfer, const LegLoad& load, Time now) {
    ports_[index(port)].port.start(transfer, load, now);
    schedule(port);
  }
  /// From now on the port takes so many times as long for everything.
  void stretch(std::int32_t port, double factor, Time now) {
    Scheduled& each = ports_[index(port)];
    if (!each.port.empty()) {
      each.port.stretch(factor, now);
      schedule(port);
    }
  }
  /// When take_ended() is to be called; Time::max() where nothing is under way. Not every call
  /// finds a transfer that ends.
  Time next() const { return ends_.empty() ? Time::max() : ends_.first(); }
  /// Adds the transfers that end now. PRECONDITION: now is not after next().
  void take_ended(Time now, std::vector<Ended>& ended) {
    if (next() > now) {
      return;
    }
    due_.clear();
    ends_.pop(due_);
    for (const End& entry : due_) {
      Scheduled& each = ports_[index(entry.port)];
      if (entry.version != each.version) {
        continue;
      }
      each.queued = Time::max();
      while (each.end == now) {
        ended.push_back({each.port.end_first(now), entry.port});
        each.end = each.port.empty() ? Time::max() : each.port.first_end();
      }
      enqueue(entry.port);
    }
  }

 private:
  struct Scheduled {
    Port port;
    Time end = Time::max();     ///< the first
    Time queued = Time::max();  ///< of the entry of ends_ that counts; not after `end`
    std::uint32_t version = 0;  ///< of that
  };
  struct End {
    std::int32_t port;
    std::uint32_t version;
  };

  static std::size_t index(std::int32_t port) { return static_cast<std::size_t>(port); }
  void schedule(std::int32_t port) {
    Scheduled& each = ports_[index(port)];
    each.end = each.port.first_end();
    enqueue(port);
  }
  /// A later end leaves the queued entry as it is: it is looked at again when its time comes.
  void enqueue(std::int32_t port) {
    Scheduled& each = ports_[index(port)];
    if (each.end < each.queued) {
      each.queued = each.end;
      ends_.push(each.end, {port, ++each.version});
    }
  }

  std::vector<Scheduled> ports_;
  StampQueue<End> ends_;
  std::vector<End> due_;
};

}  // namespace lockstep
