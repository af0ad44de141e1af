#include "profiler/device.h"

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep {

Measurements measure_all(Device& device, std::span<const Kernel> kernels,
                         const TimingOptions& options,
                         const std::function<bool(std::size_t)>& go_on) {
  Measurements measurements;
  measurements.device = device.facts();
  std::string last_reason;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (go_on && !go_on(i)) {
      measurements.left_out.push_back(fmt::format("{} and {} more: there was no time left",
                                                  to_text(kernels[i]), kernels.size() - i - 1));
      break;
    }
    if (!device.usable()) {
      measurements.left_out.push_back(fmt::format("{} and {} more: the GPU is of no use since {}",
                                                  to_text(kernels[i]), kernels.size() - i - 1,
                                                  last_reason));
      break;
    }
    try {
      measurements.kernels[kernels[i]] = device.measure(kernels[i], options);
    } catch (const Error& error) {
      last_reason = fmt::format("{}: {}", to_text(kernels[i]), error.message());
      measurements.left_out.push_back(last_reason);
    }
  }
  if (measurements.kernels.empty() && !kernels.empty()) {
    throw Error(fmt::format("none of {} operators could be timed; the first: {}", kernels.size(),
                            measurements.left_out.front()),
                ExitCode::kMissingPart);
  }
  return measurements;
}

}  // namespace lockstep
