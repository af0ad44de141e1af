#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

/// The value of what stands in $(( … )), as bash works it out on 64-bit integers: + - * / % ** ! ~
/// comparisons, && || & | ^ << >>, ?:, brackets; no assignments. Division rounds to zero.
/// `variable` gives a name's value, or nothing if it is not known; then the result is not known
/// either.
///
/// ERRORS: Error with file and line: what is no expression, division by zero, a result beyond 64
/// bits, nesting deeper than 64.
std::optional<std::int64_t> shell_arithmetic(
    std::string_view text, const std::string& file, std::size_t line,
    const std::function<std::optional<std::int64_t>(std::string_view)>& variable);

}  // namespace lockstep
