#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

/// AICB's unit of bandwidths, in bytes per second; it calls it GB/s.
inline constexpr double kAicbUnit = 1024.0 * 1024 * 1024;

struct AicbBandwidth {
  double algbw = 0, busbw = 0;  ///< kAicbUnit, two digits
};

/// AICB's bandwidths of a communication: bytes / time, times (n-1)/n for all_gather and
/// reduce_scatter and 2(n-1)/n for all_reduce; in units of 1024^3, rounded to two digits as Python
/// does, half to even on the binary value. 0 for barriers, computations and times of 0.
AicbBandwidth aicb_bandwidth(std::string_view type, std::int64_t bytes, double milliseconds,
                             std::int64_t group_size);

/// A size as AICB writes it: a number of bytes, or "16.0 MB" in steps of 1024; what is no number is
/// 0, as AICB takes it. Nothing for an unknown unit.
std::optional<std::int64_t> aicb_size(std::string_view text);

/// "16.0 MB", "0 B", "4.0 B": AICB's text of a size.
std::string aicb_size_text(std::int64_t bytes);

}  // namespace lockstep
