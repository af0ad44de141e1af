#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/units.h"

namespace lockstep {

/// How NCCL tells a receiver that data is there.
enum class Protocol : std::uint8_t {
  kSimple,  ///< a counter after each slice, with a memory fence: all bytes are data
  kLl,      ///< 4 B of flag beside 4 B of data
  kLl128    ///< 8 B of flag in each line of 128 B
};

std::string_view name_of(Protocol protocol);  ///< "simple", "ll", "ll128"
std::optional<Protocol> protocol_named(std::string_view name);

/// Wire bytes for each byte of data, as a fraction: 1, 2 and 128/120.
struct WireRatio {
  std::int32_t wire = 1, data = 1;
  friend bool operator==(const WireRatio&, const WireRatio&) = default;
};
WireRatio wire_ratio(Protocol protocol);

/// The most data that a pipelined algorithm passes on at once. A connection's buffer has 8 slots
/// (NCCL, src/include/device.h): Simple 4 MiB / 8; LL half of 512 KiB / 8, the rest being flags;
/// LL128 15/16 of 4,915,200 B / 8.
Bytes piece_limit(Protocol protocol);

/// How many pieces a sender may be ahead of its receiver: the slots of a buffer.
inline constexpr std::int32_t kBufferSlots = 8;

/// Software latency of a transfer, before its first byte, by what it crosses.
struct HopLatency {
  Time local;    ///< within a server
  Time network;  ///< between servers
  Time launch;   ///< of what waits for nothing, besides: the kernel's start
  friend bool operator==(const HopLatency&, const HopLatency&) = default;
  friend auto operator<=>(const HopLatency&, const HopLatency&) = default;
};

}  // namespace lockstep
