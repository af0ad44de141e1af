#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "topologies/builder.h"

namespace lockstep {

/// The one-pod fabrics of SimAI's template generator: servers of GPUs behind NVSwitches, leaf
/// switches (ASW) and spines (PSW). For the same flags to_simai_text(build_simai_fabric(…)) equals
/// the generator's file: node numbering, link order and all.
///
/// Nodes: GPUs, NVSwitches, ASWs, PSWs. Links: for each GPU its NVSwitches, then its ASWs; then
/// each ASW's PSWs. With P = gpus_per_server GPU i hangs on
///     rail-optimised    ASW (i div (P * nics_per_asw)) * P + i mod P
///     otherwise         ASW i div nics_per_asw
/// and with dual ToR on the same position in both halves of the ASWs. Dual plane: each half of the
/// ASWs sees one half of the PSWs (the first half has the odd one).
struct SimaiFabric {
  bool rail_optimised = false, dual_tor = false, dual_plane = false;
  std::int64_t gpus = 0, gpus_per_server = 0, nvswitches_per_server = 0;
  std::int64_t asws = 0;  ///< replaced if it is not what the GPUs need, with a warning if given
  bool asws_given = false;
  std::int64_t nics_per_asw = 0, psws = 0;
  std::int64_t asws_per_psw = 0;  ///< capacity only: the wiring does not depend on it
  std::string gpu_type, nvlink_rate, nvlink_delay, nic_rate, fabric_rate, delay, error_rate;
};

/// ERRORS: Error for dual plane without dual ToR or rails, a last server that is not full, more
/// segments than asws_per_psw allows. The file name is prefix{g}g_{gps}gps_infix{rate}_{type}.
BuiltTopology build_simai_fabric(const SimaiFabric& fabric, std::string_view prefix,
                                 std::string_view infix);
/// The same, with the file name that SimAI's generator gives when it is told no template.
BuiltTopology build_simai_fabric(const SimaiFabric& fabric);

/// The flags' values; the three switches as given.
SimaiFabric simai_fabric(const FlagValues& flags);
/// Of `asked`'s switches those that the template of this name does not have.
void note_ignored(BuiltTopology& built, const SimaiFabric& asked, const SimaiFabric& fabric,
                  std::string_view name);

struct SimaiDefaults {
  std::string_view gpu = "32", bandwidth = "400Gbps", asw = "8", nics_per_asw = "64", psw = "64",
                   asw_per_psw = "64";
};

/// The generator's flags: readable names, then SimAI's long and short spellings.
constexpr std::array<BuilderFlag, 17> simai_flags(const SimaiDefaults& d) {
  using enum FlagKind;
  constexpr std::int64_t kMost = 1 << 20;
  return {{
      {"gpus gpu g", kCount, d.gpu, "GPUs", 1, kMost},
      {"rail-optimised rail-optimized ro", kSwitch, "false", "one leaf switch for each rail", 0, 0},
      {"dual-tor dt", kSwitch, "false", "two leaf switches for each GPU", 0, 0},
      {"dual-plane dp", kSwitch, "false", "two separate planes of spines", 0, 0},
      {"gpus-per-server gpu_per_server gps", kCount, "8", "GPUs in a server", 1, kMost},
      {"gpu-type gt", kWord, "H100", "GPU type: A100, A800, H100, H800, …", 0, 0},
      {"nvswitches-per-server nv_switch_per_server nsps", kCount, "1", "NVSwitches in a server", 0,
       64},
      {"nvlink nvlink_bw nvbw", kRate, "2880Gbps", "rate from GPU to NVSwitch", 0, 0},
      {"nvlink-delay nv_latency nl", kDelay, "0.000025ms", "delay from GPU to NVSwitch", 0, 0},
      {"delay latency l", kDelay, "0.0005ms", "delay of every Ethernet link", 0, 0},
      {"nic bandwidth bw", kRate, d.bandwidth, "rate from GPU to leaf switch", 0, 0},
      {"leaf-switches asw_switch_num asn asw", kCount, d.asw,
       "leaf switches (ASW); replaced, with a warning if given, where the GPUs need others", 0,
       kMost},
      {"gpus-per-leaf nics_per_aswitch npa nps", kCount, d.nics_per_asw,
       "GPU ports of a leaf switch", 1, kMost},
      {"spine-switches psw_switch_num psn", kCount, d.psw, "spine switches (PSW)", 0, kMost},
      {"uplink ap_bandwidth apbw", kRate, "400Gbps", "rate from leaf to spine", 0, 0},
      {"leaves-per-spine asw_per_psw app", kCount, d.asw_per_psw,
       "leaf switches a spine has ports for, a bound on the size", 0, kMost},
      {"error-rate er", kProbability, "0", "loss probability of a packet on every link", 0, 0},
  }};
}

}  // namespace lockstep
