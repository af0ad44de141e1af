#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "generator/exact/operators.h"
#include "workloads/comm.h"

namespace lockstep {

/// One communication of a pass.
struct PassComm {
  CommType comm = CommType::kNone;
  RankGroup group = RankGroup::kTp;
  Bytes bytes;  ///< the full tensor: all-gather output, reduce-scatter input, all-to-all buffer
  bool send = false;  ///< send/receive: to the next of the group, or from the one before
  bool operator==(const PassComm&) const = default;
};

/// A step of a pass: an operator of the compute stream, or a transfer (comm != kNone).
struct PassStep {
  std::string name;
  Operator op;
  PassComm transfer;
  std::vector<std::int32_t> after;  ///< earlier steps of the pass; none: the pass's start
  ParameterCount ready;             ///< parameters whose gradient is complete when it ends
  bool weights = false;             ///< serves the weights' gradients alone
};

/// What one rank does for a microbatch in some consecutive modules, forward or backward. Compute
/// steps run in their order; transfers when what they are after has ended. What follows the pass
/// waits for `exits`.
struct Pass {
  std::vector<PassStep> steps;
  std::vector<std::int32_t> exits;
};

/// What the passes of a model depend on besides the sizes.
struct PassOptions {
  RankSizes sizes;
  ContextComm context_comm = ContextComm::kRing;
  Recompute recompute = Recompute::kNone;
  ProductOverlap product_overlap;
  bool tied_copy = false;  ///< a tied head has a table of its own here (other stage than the input)
};

/// The forward pass through a list of modules, with its communication:
///
///   column linear   sequence parallel: all-gather of its input's rows over tp, once for linears in
///                   a row that read the same input
///   row linear, embedding
///                   reduce-scatter over tp with sequence parallelism, else all-reduce of the
///                   output (Korthikanti et al. 2022, section 4.2.2; Shoeybi et al. 2019, section
///                   3); row linears in parallel (attention beside the MLP) are added up before,
///                   and are reduced once (Almazrouei et al. 2023, section 4.4)
///   head            as a column linear; its loss all-reduces three fp32 numbers a token over tp:
///                   maximum, target's logit, sum of exponentials (Shoeybi et al. 2019, section 3)
///   attention       fewer key and value heads than ranks: the columns of the qkv projection are
///   cut
///                   evenly all the same, so its output is all-gathered over tp and each rank takes
///                   its heads (Megatron Core, attention.py, get_query_key_value_tensors)
///                   with context parallelism. Ring: cp - 1 rounds in which keys and values of a
///                   chunk go to the next rank while the chunk before is used (Liu et al. 2023).
///                   All-gather of keys and values before (Llama 3, section 3.3.2). All-to-all of
///                   q, k, v before and of the output after (DeepSpeed Ulysses, Jacobs et al. 2023)
///   MoE             all-to-all over ep of the token copies, all-gather over expert tp; after the
///                   experts reduce-scatter and all-to-all back (GShard; Megatron Core, token
///                   dispatcher "alltoall"). Copies are bf16; those that are dispatched are fp8
///                   with the recipe blockwise (DeepSeek-V3 report, section 3.3.3).
///   custom          what its author gives, behind its work
///   fp8             what is gathered or dispatched has its blocks' scales with it; with one scale
///   a
///                   tensor, from its own values, an all-reduce of 4 bytes finds the largest value
///                   before a gather (Transformer Engine, with_amax_reduction)
///   after a row linear or MoE the residual is added.
Pass forward_pass(std::span<const Module> modules, const PassOptions& options);

/// The backward pass, in reverse order. Per matrix product the input's gradient, then the weight's.
///
///   recomputation   full: the whole forward pass again, its communication included; selective:
///                   attention again with its context-parallel communication (Korthikanti et al.,
///                   section 5). Neither repeats embeddings or the head.
///   column linear   sequence parallel: the input is gathered again, behind the input's gradient,
///                   for the weight's; the input's gradient is reduce-scattered behind the weight's
///                   product (else all-reduced there)
///   row linear, embedding
///                   sequence parallel: all-gather of the output's gradient
///   attention       gathered heads: the gradient is reduce-scattered. Ring: keys and values go
///                   round again, and a round behind them their gradients, cp - 1 rounds each;
///                   all-gather: gathered again, gradients reduce-scattered; all-to-all: both
///                   ways as forward
///   MoE             the forward transfers mirrored: the gradients of the experts' outputs are
///                   dispatched, those of their inputs combined
Pass backward_pass(std::span<const Module> modules, const PassOptions& options);

/// Parameters of the modules on one rank, with a tied head's table where it is a copy.
ParameterCount parameters_of(std::span<const Module> modules, const PassOptions& options);

}  // namespace lockstep
