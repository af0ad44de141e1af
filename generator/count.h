#pragma once

#include <compare>
#include <concepts>
#include <cstdint>

#include "base/units.h"

namespace lockstep {

/// A whole number of parameters, elements or bytes in a formula. Overflow throws Error instead of
/// wrapping, so that formulas over a user's sizes can be written as they stand in the books.
/// Division is floor division; every Count here is 0 or more.
struct Count {
  std::int64_t value = 0;

  constexpr Count() = default;
  template <std::integral T>
  constexpr Count(T v) : value(static_cast<std::int64_t>(v)) {}  // NOLINT: a number is a Count

  friend constexpr Count operator+(Count a, Count b) {
    return detail::checked_add(a.value, b.value, "size");
  }
  friend constexpr Count operator-(Count a, Count b) {
    return detail::checked_add(a.value, -b.value, "size");
  }
  friend constexpr Count operator*(Count a, Count b) {
    return detail::checked_mul(a.value, b.value, "size");
  }
  /// PRECONDITION: b > 0.
  friend constexpr Count operator/(Count a, Count b) { return a.value / b.value; }
  friend constexpr Count operator%(Count a, Count b) { return a.value % b.value; }
  constexpr Count& operator+=(Count b) { return *this = *this + b; }
  constexpr Count& operator-=(Count b) { return *this = *this - b; }
  friend constexpr auto operator<=>(Count, Count) = default;
};

/// PRECONDITION: b > 0.
constexpr Count ceil_div(Count a, Count b) { return (a + b - 1) / b; }
constexpr Count round_up(Count a, Count multiple) { return ceil_div(a, multiple) * multiple; }

}  // namespace lockstep
