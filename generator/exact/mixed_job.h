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
  std::int64_t microbatches = 1;      ///< of each pipeline's copies
  std::vector<std::int64_t> layers;   ///< of each virtual stage, in the model's order (stages.h)
  std::vector<std::size_t> gpu_type;  ///< of each stage: index into MixedJob::gpu_types
  /// Of each pipeline and stage: the stage's ranks are MixedJob::width() from this one on.
  std::vector<std::vector<std::int32_t>> first_rank;

  std::int64_t pipelines() const { return std::ssize(first_rank); }
  std::int64_t stages() const { return std::ssize(gpu_type); }
  std::int64_t chunks() const { return std::ssize(layers) / stages(); }  ///< a stage
};

/// A job whose pipelines need not be alike: each has its own depth, split of layers, chunks a
/// stage, GPU types and share of the batch. All stages are cut alike over as many ranks, so that
/// ranks with the same place in their stage hold the same parts of a layer, whichever stage of
/// their pipeline has it.
struct MixedJob {
  /// Model, sequence, batch, tp, cp, ep, expert tp, microbatch, recomputation, precision, ZeRO,
  /// replicas of hybrid sharding, buckets and overlap. GPUs, pp, vpp and what belongs to them, and
  /// the GPU type, are those of `kinds`.
  Job base;
  /// Data-parallel copies that run a pipeline together: its stages are tp x cp x copies ranks each,
  /// over which experts are cut; a pipeline's microbatch is one for each copy.
  std::int64_t copies = 1;
  std::vector<std::string> gpu_types;
  std::vector<PipelineKind> kinds;

  std::int64_t width() const { return base.tp * base.cp * copies; }  ///< ranks of a stage
  std::int64_t pipelines() const;
  std::int64_t gpus() const;  ///< that are used
};

/// The ranks of a stage, cut as all are.
RankLayout stage_layout(const MixedJob& mixed);

/// What a kind would be if all pipelines were of it: the job whose stages, memory, buckets and
/// optimizer are its own. PRECONDITION: check_mixed(), but for kinds' layers.
Job job_of(const MixedJob& mixed, const PipelineKind& kind);

/// The groups of ranks with the same layers: layers where some pipeline begins a virtual stage,
/// ascending from 0, and for each the groups of all that hold those from there to the next: the
/// same dense parameters, the same experts (of models that have some), and with hybrid sharding
/// the same part of the dense ones (else none).
struct MixedPieces {
  using Groups = std::vector<std::vector<std::int32_t>>;
  std::vector<std::int64_t> first_layer;
  std::vector<Groups> dense, expert, replica;

  /// The piece that begins with a layer; behind the last: how many there are.
  std::size_t at(std::int64_t layer) const;
  /// Units of a chunk with these layers that begin a piece within it (StagePieces::Chunk::cuts);
  /// `embedding`: it has a unit before them.
  std::vector<std::size_t> cuts(std::int64_t layer, std::int64_t layers, bool embedding) const;
};
MixedPieces pieces_of(const MixedJob& mixed);

/// The first layer of each virtual stage, and behind the last the model's layers.
std::vector<std::int64_t> first_layers(const PipelineKind& kind);

/// Whether all pipelines have the same layers a stage and microbatches, on whatever GPUs.
bool same_passes(const MixedJob& mixed);

/// ERRORS: Error with the flag at fault: those of check_job() for each kind on its GPU types; a
/// schedule other than 1f1b, fp8 with delayed scaling; ep x expert tp that does not divide a
/// stage's ranks; ZeRO-2 and 3, whose collectives come with every microbatch, unless same_passes(),
/// or, without experts, hsdp_replicas is the number of pipelines, so that each shards by itself;
/// other hsdp_replicas above 1; tied embeddings where some pipelines have one stage and others
/// several; microbatches that do not add up to the batch; a rank in two stages.
void check_mixed(const MixedJob& mixed);

/// One training step, as exact_workload() writes it, a program for each stage of each kind. `times`
/// prices operators by GPU type. What differs:
///
///   gradients   by buckets that end where any pipeline's virtual stage does, each summed over the
///               ranks with its layers; likewise what ZeRO-1 and 2 gather, piece by piece
///   norm        with ZeRO-1 over all ranks, without over each pipeline
///
/// ERRORS: check_mixed().
Workload mixed_workload(const MixedJob& mixed, std::span<const OperatorTime> times);

}  // namespace lockstep
