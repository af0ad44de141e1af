#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "workloads/workload.h"

namespace lockstep {

/// By SimaiKey, kOther excluded.
inline constexpr std::array<std::string_view, 11> kSimaiKeyTexts{
    "model_parallel_NPU_group:",
    "ep:",
    "pp:",
    "vpp:",
    "ga:",
    "all_gpus:",
    "mode:",
    "checkpoints:",
    "checkpoint_initiates:",
    "pp_comm:",
    "pp_comm",
};

/// Above 2^53 a double no longer holds every whole number.
inline constexpr std::int64_t kMaxSimaiPpComm = std::int64_t{1} << 53;

inline std::string_view text_of_key(SimaiKey key) {
  return kSimaiKeyTexts[static_cast<std::size_t>(key)];
}

/// For messages.
inline std::string_view name_of_key(SimaiKey key) {
  const std::string_view text = text_of_key(key);
  return text.substr(0, text.find(':'));
}

inline SimaiKey simai_key_named(std::string_view word) {
  const auto found = std::find(kSimaiKeyTexts.begin(), kSimaiKeyTexts.end(), word);
  return static_cast<SimaiKey>(std::distance(kSimaiKeyTexts.begin(), found));  // the end is kOther
}

/// The colon is a spelling, not another key.
constexpr SimaiKey meaning_of(SimaiKey key) {
  return key == SimaiKey::kPpCommNoColon ? SimaiKey::kPpComm : key;
}

}  // namespace lockstep
