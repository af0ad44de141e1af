#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/units.h"
#include "simulator/network/analytic/busbw_yaml.h"
#include "simulator/network/analytic/efficiency_table.h"
#include "simulator/network/analytic/hardware.h"

namespace lockstep {

/// Whose rules hold where SimAI is wrong: ours, or SimAI's to every printed digit.
enum class Flavour : std::uint8_t { kDefault, kSimai };

std::string_view name_of(Flavour flavour);  ///< "default", "simai"
/// ERRORS: Error naming the two.
Flavour parse_flavour(std::string_view text);

/// Shares of communication time hidden behind compute, 0 to 1.
struct Overlaps {
  double dp = 0;  ///< collectives after the weight gradient
  double ep = 0, tp = 0;
  std::optional<double> pp;  ///< unset: 0 in flavour default, 1 in flavour simai
};

/// What the analytic model needs to know about the cluster.
struct AnalyticOptions {
  Flavour flavour = Flavour::kDefault;
  std::int64_t gpus = 0;  ///< of the job; 0: as the workload says
  std::int64_t gpus_per_server = 8;
  std::int64_t nics_per_server = 8;
  std::optional<Bandwidth> nvlink;  ///< bus bandwidth a GPU reaches; unset: by gpu
  std::optional<Bandwidth> pair;    ///< what two GPUs of a server have; unset: all of that
  std::optional<Bandwidth> nic;     ///< of one NIC; unset: by nic_type
  /// NICs to a GPU, at least, where servers differ; unset: nics_per_server / gpus_per_server.
  std::optional<double> nics_per_gpu;
  GpuType gpu = GpuType::kH100;
  NicType nic_type = NicType::kCx7;
  Overlaps overlap;
  BusBandwidths measured;  ///< take precedence over the formulas
  EfficiencyTables efficiency = published_efficiency();
  /// Model chunks per pipeline stage, for files whose vpp holds something else (AICB writes the
  /// layers per stage). Unset: the workload's vpp. Flavour simai ignores it.
  std::optional<std::int64_t> chunks_per_stage;

  Bandwidth nvlink_rate() const { return nvlink.value_or(nvlink_bandwidth(gpu)); }
  Bandwidth pair_rate() const { return pair.value_or(nvlink_rate()); }
  Bandwidth nic_rate() const { return nic.value_or(nic_bandwidth(nic_type)); }
  double gpu_nics() const {
    return nics_per_gpu.value_or(static_cast<double>(nics_per_server) /
                                 static_cast<double>(gpus_per_server));
  }
  Bandwidth gpu_nic_rate() const {
    return Bandwidth::bytes_per_second(nic_rate().bytes_per_second() * gpu_nics());
  }
};

/// ERRORS: Error naming the first field out of its range (counts 1 to 2^31 - 1, rates above 0,
/// overlaps 0 to 1).
void validate(const AnalyticOptions& options);

}  // namespace lockstep
