#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "generator/exact/operators.h"
#include "generator/exact/schedule.h"
#include "generator/job.h"

namespace lockstep {

/// What each rank of a stage holds at the worst moment of a step. Without the framework's own,
/// buffers of communication libraries and fragmentation.
struct StageMemory {
  ParameterCount parameters;
  Bytes weights, gradients, optimizer;
  Bytes activations;              ///< kept for backward passes, of all microbatches under way
  Bytes working;                  ///< what a layer computes again; with ZeRO-3 two gathered units
  Bytes gathered;                 ///< of `working`: those units, which forward passes need, too
  std::vector<KeptByChunk> kept;  ///< of `activations`: those of one microbatch
  Bytes total() const { return weights + gradients + optimizer + activations + working; }
};

/// Bytes of activations that one rank keeps of a layer (or of what is before or after the layers)
/// from its forward to its backward pass, for one microbatch: what each module's backward needs and
/// no module before has kept.
///
///   norm, activation    its input
///   linear              its input, once for those that share it; a column linear's only as far as
///                       the rank had it before the all-gather
///   row linear          and the mask of the dropout behind it (1 byte), if there is dropout
///   attention           q, k, v; with flash attention 4 bytes a head and token, else softmax and,
///                       with dropout, its mask and result; none of these three with selective
///                       recomputation
///   head                and fp32 logits
///   MoE                 its input, router scores in fp32, the dispatched tokens, the activation's
///                       input and output, the expert's output (for the gradient of its weight)
///   full recomputation  the layer's input alone
///
/// For GPT with dropout and without flash attention these are the formulas of Korthikanti et al.
/// 2022, table 2: s b h (34 + 5 a s / h) without parallelism, s b h (10 + 24 / t + 5 a s / (h t))
/// with t tensor-parallel ranks, s b h / t (34 + 5 a s / h) with sequence parallelism too, 34 s b h
/// / t with selective recomputation.
Bytes kept_activations(std::span<const Module> modules, const Job& job);

/// What one unit of a model (a layer, or what is before or after the layers) takes of a rank.
struct UnitMemory {
  Bytes kept;        ///< kept_activations()
  Bytes recomputed;  ///< what is kept without recomputation beyond that: held for its backward
  ParameterCount parameters;
};

/// The units of a model. Depends on the model, tp, cp, ep, expert tp, the microbatch, sequence,
/// sequence parallelism, recomputation, precision and whether there are several stages, so that
/// jobs that differ in nothing of these may share it.
struct ModelMemory {
  UnitMemory before, after;
  std::vector<UnitMemory> blocks;  ///< a layer of each
};

/// Fills in weights, gradients and optimizer state of memory.parameters, as a rank holds them.
/// PRECONDITION: check_job(job).
void fill_states(const Job& job, StageMemory& memory);

/// PRECONDITION: check_job(job).
ModelMemory model_memory(const Job& job);

/// The memory of each stage.
///
/// Weights, gradients and optimizer state of a parameter (Megatron Core, dist_optimizer.md; ZeRO,
/// Rajbhandari et al. 2020, section 3.1), before they are cut:
///     bf16, fp8   2 + 4 + 12     fp32 gradients; fp32 copy and two moments
///     fp16        2 + 2 + 16     and an fp32 copy of the gradient, which is in 16 bits
///     fp32        4 + 4 + 8
/// (gradients of bf16 in 16 bits or of fp16 in fp32: as the line of such gradients).
/// ZeRO-1 cuts the last over the ranks with the same parameters, ZeRO-2 the last two, ZeRO-3 all
/// (of hsdp_replicas copies each by itself).
///
/// Activations are those of all passes that are under way in the order of the schedule (Korthikanti
/// et al., section 4.2.3: pp microbatches on the first stage, 1 + (pp - 1) / (pp vpp) times that
/// when interleaved). With full recomputation a split backward pass computes all layers of its
/// chunk again in the input's part, and holds what they keep until the weights' part, which reads
/// it.
///
/// ERRORS: those of check_job(). O(layers + pp vpp microbatches).
std::vector<StageMemory> memory_by_stage(const Job& job);
/// The same with units worked out before. PRECONDITION: check_job(job).
std::vector<StageMemory> memory_by_stage(const Job& job, const ModelMemory& model);

/// What the fullest stage needs. PRECONDITION: there is one.
Bytes peak_memory(std::span<const StageMemory> stages);

/// A line for each run of stages that are alike, for a terminal.
std::string memory_table(std::span<const StageMemory> stages);

}  // namespace lockstep
