#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

/// A double as Python's repr() writes it: the shortest digits that read back the same, ".0" on
/// whole numbers, an exponent below 1e-4 and from 1e16 on.
std::string python_repr(double value);

/// Python's round(): nearest integer, ties to even. ERRORS: outside of int64.
std::int64_t python_round(double value);

/// A text as Python's int() reads it: blanks around, a sign, underscores between digits.
std::optional<std::int64_t> python_int(std::string_view text);

/// a / b as Python divides integers: the nearest double to the true quotient.
/// PRECONDITION: b > 0.
double python_true_divide(std::int64_t a, std::int64_t b);

}  // namespace lockstep
