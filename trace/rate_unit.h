#pragma once

#include <optional>
#include <string_view>

namespace lockstep {

/// Bytes per second of the unit of a rate that a text names, the first such: "GB/s", "GBps",
/// "GiB/s", "Gb/s", "Gbps", "Gbit/s", "MB/s" …; nothing: none. A small b is bits, a B bytes.
std::optional<double> rate_unit(std::string_view text);

}  // namespace lockstep
