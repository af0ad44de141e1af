#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// Seconds of a time as people say it, up to years: "90s", "10min", "6h", "30d", "2w", "5.5y" (a
/// year has 365.25 days), "250ms". Longer than the clock of simulations can tell.
/// ERRORS: Error: no number, no unit of these, below 0, not finite.
double parse_duration_s(std::string_view text);

/// "4.2 min": the largest unit of which there is at least one, to three digits.
std::string duration_text(double seconds);

}  // namespace lockstep
