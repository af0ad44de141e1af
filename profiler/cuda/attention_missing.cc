#include "base/error.h"
#include "profiler/cuda/attention.h"

namespace lockstep::cuda {

std::unique_ptr<FusedAttention> make_fused_attention() {
  throw Error("this build has no cuDNN with its frontend headers", ExitCode::kMissingPart)
      .hint("install cuDNN 9 and nvidia-cudnn-frontend, then configure and build again");
}
bool has_fused_attention() { return false; }

}  // namespace lockstep::cuda
