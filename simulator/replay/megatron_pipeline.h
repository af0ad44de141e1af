#pragma once

#include "workloads/workload.h"

namespace lockstep {

/// AICB's table of layers as the pipeline that Megatron runs, in place of SimAI's one pass through
/// all layers: the layers of a microbatch, which AICB repeats `ga` times from "embedding_layer" on,
/// become its forward and backward pass, which each stage runs in 1F1B order (Narayanan et al.
/// 2021, section 2.2) with messages of pp_comm bytes between the stages.
///
///   before the microbatches   the forward phases of what stands before them; their gradients'
///   phases
///                             last, in reverse
///   a microbatch              each layer's forward phase; backward from the last layer the input's
///                             gradient, awaited, and the weights', not awaited. The embedding is
///                             on the first stage alone
///   behind them               all phases of what stands behind (loss, optimizer), on every stage
///
/// Communications of size 0 are left out. The result satisfies validate().
/// ERRORS: Error where the layers are not `ga` equal sequences, where the file does not say how
/// many GPUs, and those of parallel_groups(). O(layers x pp).
WorkloadJob megatron_pipeline(const WorkloadJob& job);

}  // namespace lockstep
