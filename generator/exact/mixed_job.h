#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "generator/exact/folded_pass.h"
#include "generator/exact/groups.h"
#include "generator/job.h"
#include "workloads/workload.h"

namespace lockstep {

/// Pipelines that are cut alike and run as many microbatches a step.
struct PipelineKind {
  std::int64_t microbatches = 1;      ///< of each pipeline
  std::vector<std::int64_t> layers;   ///< of each stage
  std::vector<std::size_t> gpu_type;  ///< of each stage: index into MixedJob::gpu_types
  /// Of each pipeline and stage: the stage's ranks are tp from this one on.
  std::vector<std::vector<std::int32_t>> first_rank;

  std::int64_t pipelines() const { return std::ssize(first_rank); }
  std::int64_t stages() const { return std::ssize(layers); }
};

/// A job whose data-parallel copies need not be alike: each is a pipeline of its own depth, split
/// of layers, GPU types and share of the batch. All have one tp and microbatch, so that the ranks
/// with the same place among their tensor-parallel ones hold the same parts of a layer, whichever
/// stage of their pipeline has it.
struct MixedJob {
  /// Model, sequence, batch, tp, microbatch, recomputation, precision, ZeRO up to 1, buckets and
  /// overlap. GPUs, pp and what belongs to them, and the GPU type, are those of `kinds`.
  Job base;
  std::vector<std::string> gpu_types;
  std::vector<PipelineKind> kinds;

  std::int64_t pipelines() const;
  std::int64_t gpus() const;  ///< that are used
};

/// What a kind would be if all pipelines were of it: the job whose stages, memory, buckets and
/// optimizer are its own. PRECONDITION: check_mixed(), but for kinds' layers.
Job job_of(const MixedJob& mixed, const PipelineKind& kind);

/// The groups of ranks with the same layers: layers where some pipeline begins a stage, ascending
/// from 0, and for each the groups of all that hold those from there to the next, one group for
/// each place among tensor-parallel ranks.
struct MixedPieces {
  std::vector<std::int64_t> first_layer;
  std::vector<std::vector<std::vector<std::int32_t>>> groups;

  /// The piece that begins with a layer; behind the last: how many there are.
  std::size_t at(std::int64_t layer) const;
  /// Units of a stage with these layers that begin a piece within it (StagePieces::cuts);
  /// `embedding`: it has a unit before them.
  std::vector<std::size_t> cuts(std::int64_t layer, std::int64_t layers, bool embedding) const;
};
MixedPieces pieces_of(const MixedJob& mixed);

/// ERRORS: Error with the flag at fault: those of check_job() for each kind on its GPU types;
/// context or expert parallelism, interleaving, ZeRO above 1, a schedule other than 1f1b, models
/// with experts, fp8 with delayed scaling; tied embeddings where some pipelines have one stage and
/// others several; microbatches that do not add up to the batch; a rank in two stages.
void check_mixed(const MixedJob& mixed);

/// One training step, as exact_workload() writes it, a program for each stage of each kind. `times`
/// prices operators by GPU type. What differs:
///
///   gradients   by buckets that end where any pipeline's stage does, each summed over the ranks
///               with its layers; likewise what ZeRO-1 gathers
///   norm        with ZeRO-1 over all ranks, without over each pipeline
///
/// ERRORS: check_mixed().
Workload mixed_workload(const MixedJob& mixed, std::span<const OperatorTime> times);

}  // namespace lockstep
