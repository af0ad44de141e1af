#pragma once

#include <memory>

#include "profiler/run/transport.h"

namespace lockstep::cuda {

/// Collectives by NCCL on the GPU of that number, compute by cuBLASLt. ERRORS:
/// ExitCode::kMissingPart: no GPU, or this build has no NCCL.
std::unique_ptr<Transport> open_nccl_transport(int number);

}  // namespace lockstep::cuda
