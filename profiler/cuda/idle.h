#pragma once

#include <cstdint>
#include <cuda_runtime_api.h>

namespace lockstep::cuda {

/// One thread that waits for so many nanoseconds, or until `stop`, which the device can read, is
/// not 0.
void idle(std::int64_t nanoseconds, const int* stop, cudaStream_t stream);

}  // namespace lockstep::cuda
