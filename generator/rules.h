#pragma once

#include <string_view>

#include "generator/count.h"

namespace lockstep {

/// The divisor of `value` nearest to `near` from below and from above; 0 where there is none within
/// a million steps. O(min(near, 1e6)). PRECONDITION: value > 0, near > 0.
struct NearDivisors {
  Count below, above;
};
NearDivisors nearest_divisors(Count value, Count near);

/// ERRORS: `divisor` does not divide `value`; the message names both flags and the nearest values
/// of either that would do. `what` says whose size `value` is ("hidden_size", "3 x attention heads
/// x head size"). PRECONDITION: divisor > 0.
void require_divides(std::string_view what, Count value, std::string_view flag, Count divisor);

/// ERRORS: more rows than we write in one file (2e9): some flag is far too large.
void require_row_limit(long double rows);

}  // namespace lockstep
