#pragma once

#include <span>

#include "base/units.h"
#include "simulator/network/flow/max_min.h"

namespace lockstep {

class FluidNetwork;

/// Sets caps on the rates of a FluidNetwork's connections (FluidNetwork::cap()) as time goes by.
class RateLaw {
 public:
  virtual ~RateLaw() = default;

  /// Called with rates up to date: where some have changed, those that did, and at the moment that
  /// it named last. Returns when it wants to be called again; Time::max(): at the next change.
  virtual Time adjust(FluidNetwork& network, std::span<const VariableId> changed) = 0;
};

}  // namespace lockstep
