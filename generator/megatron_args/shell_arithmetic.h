#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

/// Gives the value of NAME or NAME[number]; nothing if it is not known.
using ShellNumberOf = std::function<std::optional<std::int64_t>(std::string_view)>;
/// Gives NAME or NAME[number] a value, or one that is not known.
using ShellSetNumber = std::function<void(std::string_view, std::optional<std::int64_t>)>;

/// The value of what stands in $(( … )), (( … )) or behind let, as bash works it out on 64-bit
/// integers: all its operators, numbers such as 010, 0x1f and 2#101, elements of arrays, what
/// stands behind && || ?: only where it counts. Division rounds to zero. What is not known, or
/// depends on that, makes the result not known, and so it is with what is set there.
///
/// ERRORS: Error with file and line: what is no expression, division by zero, a result beyond 64
/// bits, nesting deeper than 500 levels.
std::optional<std::int64_t> shell_arithmetic(std::string_view text, const std::string& file,
                                             std::size_t line, const ShellNumberOf& variable,
                                             const ShellSetNumber& assign = {});

/// Whether an arithmetic text holds =, += and the like, ++ or --. O(text).
bool changes_shell_variable(std::string_view text);

}  // namespace lockstep
