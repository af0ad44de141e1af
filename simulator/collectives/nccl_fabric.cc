#include "simulator/collectives/nccl_fabric.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

std::string gpu_series(std::string_view gpu_type) {
  const std::string text = to_lower(gpu_type);
  std::string_view rest = text;
  for (const std::string_view vendor : {"nvidia", "tesla", "amd", "instinct"}) {
    rest.remove_prefix(rest.starts_with(vendor) ? vendor.size() : 0);
    rest.remove_prefix(std::min(rest.find_first_not_of(" -_"), rest.size()));
  }
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto digits = std::find_if_not(rest.begin(), rest.end(), letter);
  return {rest.begin(), std::find_if_not(digits, rest.end(), is_digit)};
}

GpuArch arch_of(std::string_view gpu_type) {
  const std::string series = gpu_series(gpu_type);
  if (series.starts_with('v')) {
    return GpuArch::kVolta;
  }
  if (series.starts_with('a')) {
    return GpuArch::kAmpere;
  }
  return series.starts_with('b') || series.starts_with("gb") ? GpuArch::kBlackwell
                                                             : GpuArch::kHopper;
}

bool is_beside_grace(std::string_view gpu_type) {
  const std::string series = gpu_series(gpu_type);
  return series.starts_with("gh") || series.starts_with("gb");
}

NcclVersion parse_nccl_version(std::string_view text) {
  const auto parts = split(text, '.');
  std::int64_t number = 0;
  bool known = parts.size() == 2 || parts.size() == 3;
  for (std::size_t i = 0; i < 3 && known; ++i) {
    const auto part = i < parts.size() ? to_int(parts[i]) : 0;
    known = part && *part >= 0 && *part < 100;
    number = number * 100 + part.value_or(0);
  }
  if (!known || number < 20800 || number >= 23100) {
    throw Error("'" + printable(text) + "' is no version of NCCL that is known here")
        .expected("2.8.0 to 2.30.7");
  }
  return {static_cast<std::int32_t>(number)};
}

}  // namespace lockstep
