#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/network/analytic/analytic_options.h"
#include "simulator/replay/step_result.h"
#include "workloads/workload.h"

namespace lockstep {

/// One training step by closed formulas: no network, no clock, no micro-batch loop (the workload
/// has its micro-batches unrolled into layers). Every compute time counts in full; of each
/// collective's time (collective_time) the share 1 - overlap is exposed. Then
///
///   bubble = (pp - 1) / (ga * vpp) * sum over layers except "embedding_layer" of
///            forward, input-gradient and weight-gradient compute and forward and input-gradient
///            communication
///   PP     = 2 * vpp * ga * pp_comm / (bandwidth between stages) * (1 - pp overlap)
///   total  = compute + exposed + bubble + PP
///
/// Forward passes that checkpoints make run again count again. The flavours differ in the
/// communication of the bubble, in PP and in group sizes: docs/models.md lists every difference.
///
/// The data-parallel degree is gpus / (tp * pp), where gpus is options.gpus or, if that is 0,
/// parallel.gpus. `workload` and `topology` of the result are left empty. O(layers).
/// ERRORS: Error when options or degrees are out of range, when (flavour default) the GPUs do not
/// divide into the groups that the layers use, and those of collective_time, naming the layer.
StepResult analytic_step(const LayerTable& table, const Parallelism& parallel,
                         const AnalyticOptions& options);

/// How often each of `layers` layers' forward passes runs in a step: once, and once more for each
/// layer of `initiates` that comes after it while the nearest of `checkpoints` at or before that
/// one is at or before this one. Without such a checkpoint it runs again from the first layer.
/// O(layers + k log k). ERRORS: Error when an index is not below `layers`.
std::vector<std::int64_t> forward_runs(std::size_t layers,
                                       std::span<const std::int32_t> checkpoints,
                                       std::span<const std::int32_t> initiates);

}  // namespace lockstep
