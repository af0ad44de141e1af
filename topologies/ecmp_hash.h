#pragma once

#include <cstdint>
#include <string_view>

#include "base/ids.h"

namespace lockstep {

/// MurmurHash3_x86_32 (A. Appleby, public domain; the variant of SMHasher) of a text's bytes. The
/// same on machines of either byte order.
std::uint32_t murmur3_x86_32(std::string_view bytes, std::uint32_t seed);

/// The same of 12 bytes given as three words, each in little-endian order.
std::uint32_t murmur3_x86_32(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t seed);

/// The IPv4 address 11.(i / 256).(i % 256).1 of node i, as a number; beyond 65,535 the carry goes
/// into the first octet.
constexpr std::uint32_t node_address(NodeId node) {
  return 0x0b000001U + (static_cast<std::uint32_t>(node.value) << 8);
}

/// Seed of the hash by which a host picks among its ports (a switch's seed is its node id): the
/// default of ns-3's Hash32.
inline constexpr std::uint32_t kHostHashSeed = 0x8badf00dU;

}  // namespace lockstep
