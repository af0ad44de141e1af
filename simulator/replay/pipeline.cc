#include "simulator/replay/pipeline.h"

#include <algorithm>

#include <fmt/format.h>

namespace lockstep {

void settle_pipeline(Parallelism& parallel, std::optional<std::int64_t> chunks_per_stage,
                     std::vector<std::string>& warnings) {
  if (parallel.ga == 0) {
    warnings.push_back("ga is 0; counted as 1 micro-batch");
  }
  if (chunks_per_stage) {
    parallel.vpp = *chunks_per_stage;
  } else if (parallel.pp > 1 && parallel.vpp > 1) {
    warnings.push_back(
        fmt::format("vpp {} is taken as {} model chunks per stage; AICB writes the layers per "
                    "stage there (--chunks-per-stage 1 corrects it)",
                    parallel.vpp, parallel.vpp));
  }
  parallel.ga = std::max<std::int64_t>(parallel.ga, 1);
  parallel.vpp = std::max<std::int64_t>(parallel.vpp, 1);
}

}  // namespace lockstep
