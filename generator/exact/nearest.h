#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

/// For hints about degrees that do not fit. Values are in ascending order and at least 1.

/// The largest divisor of `number` below `value` and the smallest above it, where there are such.
/// O(sqrt(number)). PRECONDITION: number >= 1.
std::vector<std::int64_t> nearest_divisors(std::int64_t number, std::int64_t value);

/// The multiples of `unit` around `number`; only the upper one where the lower is 0.
std::vector<std::int64_t> nearest_multiples(std::int64_t number, std::int64_t unit);

/// Around `value`, the divisors of `size` and `ranks` that divide `number` or are a multiple of it.
/// O(sqrt(gcd)). PRECONDITION: all at least 1.
std::vector<std::int64_t> nearest_related(std::int64_t number, std::int64_t value,
                                          std::int64_t size, std::int64_t ranks);

/// "4 or 8".
std::string nearest_text(const std::vector<std::int64_t>& values);

}  // namespace lockstep
