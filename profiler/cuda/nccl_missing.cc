#include "base/error.h"
#include "profiler/cuda/nccl_transport.h"

namespace lockstep::cuda {

std::unique_ptr<Transport> open_nccl_transport(int) {
  throw Error("this build has no NCCL", ExitCode::kMissingPart)
      .hint("install NCCL's headers and library, then configure and build again");
}

}  // namespace lockstep::cuda
