#include "profiler/device.h"

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep {

Measurements measure_all(Device& device, std::span<const Kernel> kernels,
                         const TimingOptions& options,
                         const std::function<void(std::size_t)>& progress) {
  Measurements measurements;
  measurements.device = device.facts();
  std::string first_reason;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (progress) {
      progress(i);
    }
    try {
      measurements.kernels[kernels[i]] = device.measure(kernels[i], options);
    } catch (const Error& error) {
      measurements.left_out.push_back(fmt::format("{}: {}", to_text(kernels[i]), error.message()));
      if (first_reason.empty()) {
        first_reason = measurements.left_out.back();
      }
    }
  }
  if (measurements.kernels.empty() && !kernels.empty()) {
    throw Error(fmt::format("none of {} operators could be timed; the first: {}", kernels.size(),
                            first_reason),
                ExitCode::kMissingPart);
  }
  return measurements;
}

}  // namespace lockstep
