#include <sstream>

#include "profiler/cuda/cuda_device.h"
#include "profiler/cuda/nccl_transport.h"
#include "profiler/gpu_module.h"

namespace {

std::vector<std::string> missing_parts() {
  std::vector<std::string> parts;
  std::istringstream list(LOCKSTEP_GPU_MISSING);
  for (std::string part; std::getline(list, part, ';');) {
    parts.push_back(part);
  }
  return parts;
}

}  // namespace

extern "C" {
extern const lockstep::GpuModule lockstep_gpu_module;
const lockstep::GpuModule lockstep_gpu_module{lockstep::cuda::open_device,
                                              lockstep::cuda::open_nccl_transport, missing_parts};
}
