#include "profiler/device.h"

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep {
namespace {

/// ERRORS: nothing was measured.
void check_some(const Measurements& measurements) {
  if (measurements.kernels.empty() && !measurements.left_out.empty()) {
    throw Error(fmt::format("none of the operators could be timed; the first: {}",
                            measurements.left_out.front()),
                ExitCode::kMissingPart);
  }
}

}  // namespace

Measurements measure_all(Device& device, std::span<const Kernel> kernels,
                         const TimingOptions& options,
                         const std::function<bool(std::size_t)>& go_on) {
  Measurements measurements;
  measurements.device = device.facts();
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const auto leave_rest_out = [&](const std::string& why) {
      measurements.left_out.push_back(
          fmt::format("{} and {} more: {}", to_text(kernels[i]), kernels.size() - i - 1, why));
    };
    if (go_on && !go_on(i)) {
      leave_rest_out("there was no time left");
      break;
    }
    if (!device.usable()) {
      leave_rest_out("the GPU is of no use since " +
                     (measurements.left_out.empty() ? "before" : measurements.left_out.back()));
      break;
    }
    measure_one(device, kernels[i], options, measurements);
  }
  check_some(measurements);
  return measurements;
}

Measurements measure_job(Device& device, std::span<const StepKernel> kernels,
                         const TimingOptions& options) {
  Measurements measurements;
  measurements.device = device.facts();
  device.measure_step(kernels, options, measurements);
  check_some(measurements);
  return measurements;
}

}  // namespace lockstep
