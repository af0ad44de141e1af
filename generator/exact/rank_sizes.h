#pragma once

#include <cstdint>

#include "base/units.h"
#include "generator/exact/groups.h"
#include "generator/job.h"

namespace lockstep {

/// What one rank has of each microbatch, and how wide its numbers are.
struct RankSizes {
  std::int64_t tp = 1, cp = 1, ep = 1, etp = 1;
  bool sequence_parallel = false;  ///< and tp > 1
  std::int64_t micro_batch = 1, seq = 1;
  std::int64_t tokens = 1;        ///< micro_batch x seq / cp: rows inside attention and MLP
  std::int64_t local_tokens = 1;  ///< tokens / tp with sequence parallelism: rows between them
  double routed = 1;              ///< token copies in an MoE over those of an even, dropless router
  bool capacity = false;          ///< `routed` is a capacity factor: experts are padded to it
  bool flash_attention = true, dropout = false;

  // Bytes of an element.
  int activation = 2;  ///< 4 in fp32; fp8 keeps bf16 between its matrix products
  int operand = 2;     ///< of matrix products, and of what is gathered for them: 1 in fp8
  /// Operands that share a byte of scales, in memory and on the wire: 32 in blockwise fp8 (4 bytes
  /// for 128: DeepSeek-V3 report, section 3.3.2) and in mxfp8 (1 byte for 32: OCP Microscaling
  /// Formats 1.0, section 5.2); 0: one scale a tensor.
  int scale_sharers = 0;
  /// The largest value of a tensor is looked for over tp before it is cut for a gather (fp8 with
  /// one scale a tensor, from its own values).
  bool shares_largest = false;
  /// Tokens and gradients of outputs go to experts as operands (fp8 by DeepSeek-V3's recipe; its
  /// report, section 3.3.3); else as activations, as in Megatron Core's dispatchers.
  bool dispatches_operands = false;
  int parameter = 2;  ///< 4 in fp32
  /// Of gradients, in memory and on the wire: 4, but 2 in fp16, unless the job says it (Megatron
  /// Core accumulates and reduces those of bf16 in fp32: arguments.py,
  /// accumulate_allreduce_grads_in_fp32, grad_reduce_in_bf16).
  int gradient = 4;
  friend bool operator==(const RankSizes&, const RankSizes&) = default;
};

/// Bytes of operands of matrix products as they are gathered and kept, with their scales.
Bytes operand_bytes(std::int64_t rows, std::int64_t width, const RankSizes& sizes);

/// Tensor parallelism inside experts: expert_tp, or tp where that is 0.
std::int64_t expert_tp(const Job& job);

/// PRECONDITION: check_job() accepts it.
RankSizes rank_sizes(const Job& job);

/// Of the ranks with the same dense (expert) parameters, those that cut them among each other under
/// sharding: all, or the ones of a replica.
std::int64_t dense_shards(const Job& job);
std::int64_t expert_shards(const Job& job);

/// The groups' view of a job; a model without experts has ep and expert tp of 1 x tp.
RankLayout layout_of(const Job& job);

/// Checks everything the exact workload relies on.
///
/// ERRORS: Error whose field is the flag, naming the broken rule and the nearest values that keep
/// it: those of check_layout() and cut_into_stages(); sizes out of range; a batch that is no
/// multiple of micro_batch x dp; a sequence that does not divide into 2 cp chunks (causal
/// balancing, Megatron Core), or by tp for sequence parallelism; widths, heads or experts that do
/// not divide; overlap of products without sequence parallelism (Megatron-LM, arguments.py), or of
/// widths that its pieces do not divide; experts with tp > 1 without sequence parallelism (Megatron
/// Core, moe_layer.py); vpp > 1 with a number of microbatches that pp does not divide (Megatron
/// Core, schedules.py); hsdp_replicas without ZeRO-3 or that do not divide dp x cp and the ranks
/// that hold the same experts; a precision the GPU lacks.
void check_job(const Job& job);

}  // namespace lockstep
