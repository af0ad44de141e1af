#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "simulator/network/flow/max_min.h"

namespace lockstep {

/// Checks the max-min certificate (see MaxMin, "Whole numbers": exact, without a tolerance) of the
/// given active variables after a solve(): each is at its bound or at the level of a constraint
/// that is full, and none is above. Returns the first violation in words; empty if there is none.
/// O(terms * u log u) at worst, with u users a constraint; Debug builds call it for all that a
/// solve has reached.
std::string max_min_violation(const MaxMin& system, std::span<const std::int32_t> variables);

}  // namespace lockstep
