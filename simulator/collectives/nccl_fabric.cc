#include "simulator/collectives/nccl_fabric.h"

#include <string>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

GpuArch arch_of(std::string_view gpu_type) {
  if (gpu_type.starts_with("V")) {
    return GpuArch::kVolta;
  }
  if (gpu_type.starts_with("A")) {
    return GpuArch::kAmpere;
  }
  return gpu_type.find('B') != std::string_view::npos ? GpuArch::kBlackwell : GpuArch::kHopper;
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
