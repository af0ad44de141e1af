#include "simulator/network/flow/binding_ports.h"

#include <algorithm>

#include "simulator/network/flow/fluid_network.h"

namespace lockstep {

bool BindingPorts::cross(const std::vector<MaxMin::Term>& path, std::size_t hop) {
  const std::size_t index = path[hop].constraint.index();
  Port& port = ports_[index];
  if (port.binds) {
    return true;
  }
  if (hop == 0 || path[hop].coefficient != 1 || path[hop - 1].coefficient != 1) {
    bind(index);
    return true;
  }
  const std::int32_t before = path[hop - 1].constraint.value;
  if (std::ranges::find(port.before, before) == port.before.end()) {
    port.before.push_back(before);
    if (!fits(index)) {
      bind(index);
    }
  }
  return port.binds;
}

void BindingPorts::bind(std::size_t port) { ports_[port] = {true, {}}; }

bool BindingPorts::fits(std::size_t port) const {
  __extension__ __int128 inflow = 0;
  for (const std::int32_t before : ports_[port].before) {
    inflow += FluidNetwork::units(capacity_[static_cast<std::size_t>(before)]);
  }
  return inflow <= FluidNetwork::units(capacity_[port]);
}

std::vector<std::int32_t> BindingPorts::set_capacity(std::size_t port, double capacity) {
  capacity_[port] = capacity;
  std::vector<std::int32_t> found;
  for (std::size_t other = 0; other < ports_.size(); ++other) {
    if (!ports_[other].binds && !fits(other)) {
      bind(other);
      found.push_back(static_cast<std::int32_t>(other));
    }
  }
  return found;
}

}  // namespace lockstep
