#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "simulator/network/flow/max_min.h"

namespace lockstep {

/// Which ports can limit the flows that cross them. A port is spared as long as all that reaches it
/// comes over other ports whose capacities do not add up to more than its own: whatever they let
/// through fits, so its constraint holds for every allocation that the others allow, and leaving it
/// out changes no max-min rate. Capacities count as the network has them, in whole units: two that
/// are rounded up may let a unit more through than the port that just takes both. A port where
/// flows begin, or that carries parts of flows, counts.
/// O(ports before) a hop.
class BindingPorts {
 public:
  /// One capacity a port.
  explicit BindingPorts(std::vector<double> capacity)
      : capacity_(std::move(capacity)), ports_(capacity_.size()) {}

  /// Notes that flows cross hop `hop` of a path (port p is constraint p); whether its port counts
  /// from now on.
  bool cross(const std::vector<MaxMin::Term>& path, std::size_t hop);
  std::size_t size() const { return ports_.size(); }
  bool binds(std::size_t port) const { return ports_[port].binds; }
  void bind(std::size_t port);

  double capacity(std::size_t port) const { return capacity_[port]; }
  /// Returns the ports that count from now on and did not before.
  std::vector<std::int32_t> set_capacity(std::size_t port, double capacity);

 private:
  struct Port {
    bool binds = false;
    std::vector<std::int32_t> before;  ///< ports that lead to it
  };
  bool fits(std::size_t port) const;

  std::vector<double> capacity_;
  std::vector<Port> ports_;
};

}  // namespace lockstep
