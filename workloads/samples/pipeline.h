#pragma once

#include "workloads/samples/gpt.h"
#include "workloads/workload.h"

namespace lockstep::samples {

/// Two pipeline stages of tp 2 on four GPUs, given rank by rank: three microbatches in the order of
/// 1F1B, with compute, tensor-parallel, sending and receiving streams. `layers` is per stage.
WorkloadJob pipeline_job(std::string name, const GptShape& shape);

}  // namespace lockstep::samples
