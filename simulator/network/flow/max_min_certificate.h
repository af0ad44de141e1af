#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "simulator/network/flow/max_min.h"

namespace lockstep {

/// Checks the max-min certificate (see MaxMin) of the given active variables after a solve(), and
/// that no constraint of theirs is overfull. Returns the first violation in words; empty if there
/// is none. `tolerance` is relative. O(terms * users of their constraints) at worst; Debug builds
/// call it for every component they solve.
std::string max_min_violation(const MaxMin& system, std::span<const std::int32_t> variables,
                              double tolerance = 1e-9);

}  // namespace lockstep
