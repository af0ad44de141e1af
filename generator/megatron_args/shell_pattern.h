#pragma once

#include <optional>
#include <string_view>

namespace lockstep {

/// Whether `text` matches a shell pattern of letters, *, ?, […] and [!…] with ranges and the
/// classes of letters and digits ([:digit:] …). Nothing where the pattern holds more: @(a|b),
/// [[=e=]]. O(text x pattern).
std::optional<bool> shell_matches(std::string_view text, std::string_view pattern);

/// How much work that is at most, in characters looked at a hundred at a time.
std::size_t shell_match_cost(std::string_view text, std::string_view pattern);

}  // namespace lockstep
