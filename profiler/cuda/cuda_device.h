#pragma once

#include <memory>

#include "profiler/device.h"

namespace lockstep::cuda {

/// The GPU of that number. ERRORS: ExitCode::kMissingPart: no driver, no such GPU.
std::unique_ptr<Device> open_device(int number);

}  // namespace lockstep::cuda
