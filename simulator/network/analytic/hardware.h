#pragma once

#include <cstdint>
#include <string_view>

#include "base/units.h"

namespace lockstep {

enum class GpuType : std::uint8_t { kA100, kA800, kH100, kH800, kH20 };
enum class NicType : std::uint8_t { kCx6, kCx7, kBf3 };

/// Bus bandwidth that a ring over one server's NVLinks reaches, per GPU: links times the 20.0 GB/s
/// (A100, A800) or 20.6 GB/s (H100, H800, H20) that each link gives in practice.
Bandwidth nvlink_bandwidth(GpuType type);

/// What one NIC gives in practice: 23.5 GB/s of a 200 Gbps CX6, 48.5 GB/s of a 400 Gbps CX7 or BF3.
Bandwidth nic_bandwidth(NicType type);

/// "A100", "cx7", …; case is ignored. ERRORS: Error naming the word and the known ones.
GpuType parse_gpu_type(std::string_view text);
NicType parse_nic_type(std::string_view text);
std::string_view name_of(GpuType type);
std::string_view name_of(NicType type);

}  // namespace lockstep
