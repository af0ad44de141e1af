#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/units.h"

namespace lockstep {

enum class GpuArch : std::uint8_t { kVolta, kAmpere, kHopper, kBlackwell };

/// "h100" of "H100", "h100-80GB" and "NVIDIA H100 80GB HBM3": the letters and the digits behind
/// them that name a GPU, in small letters, without its vendor, form factor and memory.
std::string gpu_series(std::string_view gpu_type);

/// The architecture of a GPU type by gpu_series(): V100 is Volta; names that start with A Ampere;
/// H100, H800, H20, H200, GH200 Hopper; names that start with B or GB Blackwell; others are taken
/// for Hopper.
GpuArch arch_of(std::string_view gpu_type);

/// Whether a GPU type by gpu_series() is one beside a Grace processor: GH200, GB200, GB300.
bool is_beside_grace(std::string_view gpu_type);

/// What NCCL looks at when it chooses how to carry out a collective: the links of one server.
struct NcclFabric {
  GpuArch arch = GpuArch::kHopper;
  Bandwidth nvlink;             ///< of a GPU, all its links, per direction; 0: PCIe only
  bool nvswitch = false;        ///< NVLinks end at switches, which add and multicast from Hopper on
  std::int32_t nvswitches = 1;  ///< over which a GPU's links are spread, where they do
  bool mesh = false;  ///< NVLinks go from each GPU to each other of its server, no switches
  std::int32_t link_rings = 0;  ///< of the group where not alike to each: nvlink is theirs together
  Bandwidth nic;                ///< of one NIC
  std::int32_t nics = 0;        ///< that the group's ranks of one server have
  bool amd_host = false;        ///< AMD processors: another cap on LL between servers
  bool grace_host = false;  ///< Grace's (Arm), not x86: NVLSTree's bandwidth does not go by size
  /// GPUs reach their NIC through the host bridge (NCCL's path PHB), not over a PCIe switch: no GPU
  /// relays for another (PXN), and LL128 is off between servers.
  bool nic_behind_host = false;
  friend auto operator<=>(const NcclFabric&, const NcclFabric&) = default;
};

/// A release of NCCL, as 10000 * major + 100 * minor + patch.
struct NcclVersion {
  std::int32_t number = 23007;
  friend auto operator<=>(const NcclVersion&, const NcclVersion&) = default;
};
/// Reads "2.27.5". ERRORS: Error outside 2.8 … 2.30.
NcclVersion parse_nccl_version(std::string_view text);

}  // namespace lockstep
