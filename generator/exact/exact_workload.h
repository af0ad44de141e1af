#pragma once

#include "generator/exact/folded_pass.h"
#include "generator/job.h"
#include "workloads/workload.h"

namespace lockstep {

/// More operations than a workload of ours may have, all programs together.
inline constexpr std::int64_t kMaxExactOps = 20'000'000;

/// One training step of a job as it is, as an OpTable: a program for each pipeline stage, shared by
/// its ranks. `time` prices the operators.
///
/// Streams: compute; tp, ep, cp (and cp send, cp receive for rings), dp; a stream for each
/// direction of the pipeline's messages, which compute never waits to have sent; global for what
/// all stages take part in. The passes of a stage run in the order of job.schedule; a pass starts
/// when its input has come and the pass before has ended with all its transfers.
///
///   gradients   by bucket, those of later stages at once (buckets.h), as soon as the last
///               microbatch has completed them: an all-reduce over dp x cp (experts: over the ranks
///               with the same ones); from ZeRO-1 a reduce-scatter (Megatron's distributed
///               optimizer; Rajbhandari et al. 2020); ZeRO-2 after every microbatch
///   parameters  ZeRO-1, -2: all-gathered by the same buckets, ahead of the first forward pass that
///               needs them (overlap_parameters: what the step before left to do) or after the
///               optimizer
///   ZeRO-3      each layer's parameters are gathered before its forward and again before its
///               backward pass, one layer ahead, and its gradients reduce-scattered after, for
///               every microbatch (Rajbhandari et al., section 7.2.2; FSDP, Zhao et al. 2023), over
///               dp x cp / hsdp_replicas ranks (experts: as large a part of the ranks with the same
///               ones; Megatron Core, num_distributed_optimizer_instances); the replicas all-reduce
///               their shards of the last one
///   at the end  gradients that tensor-parallel ranks have parts of under sequence parallelism
///               (norms, biases, routers: Megatron Core, finalize_model_grads.py), tied embeddings
///               over first and last stage, the norm of all gradients (4 bytes), Adam, bound by
///               memory
///   fp8         delayed scaling: each pass of a stage ends with an all-reduce over its tp x dp x
///   cp
///               ranks of the largest values it saw, 3 fp32 numbers for each weight forward and 2
///               backward (Transformer Engine, reduce_and_update_fp8_tensors)
///   loss        one all-reduce of 8 bytes over dp x cp on the last stage
///
/// The result satisfies validate(). O(operations), memory the same.
/// ERRORS: those of check_job(); more than kMaxExactOps operations.
Workload exact_workload(const Job& job, const OperatorTime& time);

}  // namespace lockstep
