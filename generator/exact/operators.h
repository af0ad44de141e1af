#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "generator/exact/operator.h"
#include "generator/exact/rank_sizes.h"
#include "generator/model/model.h"

namespace lockstep {

/// How a tensor between two modules lies on the ranks of a tensor-parallel group.
enum class Region : std::uint8_t {
  kSequence,  ///< whole features; rows cut over tp under sequence parallelism, else whole
  kTensor,    ///< all rows; features (heads) cut over tp
};

/// The region each module of a list runs in. A column linear leads from kSequence into kTensor, a
/// row linear back; attention is in kTensor; a plain linear, an MoE and an embedding are in
/// kSequence, wherever the module before was (DeepSeek's kv projection reads the layer's input
/// again); norms, activations and custom modules stay where they are.
/// (Shoeybi et al. 2019, section 3; Korthikanti et al. 2022, section 4.2.2.)
std::vector<Region> regions_of(std::span<const Module> modules);

/// A module's work on one rank for one microbatch. Each forward operator of a matrix product (2 m n
/// k floating-point operations) has one for its input's gradient and one for its weight's; what has
/// no weights, or so small ones that they are computed along the way, has its whole backward in
/// input_grad.
struct ModuleOperators {
  std::vector<Operator> forward, input_grad, weight_grad;
};

/// Everything but an MoE. Bytes are the operands read and results written once each; a norm reads
/// and writes its elements (backward: reads two, writes one), flash attention reads q, k, v and
/// writes its output (Dao et al. 2022). Without it the scores pass through memory: forward 4 times
/// (written by the product, read and written by the softmax, read by the next product), backward 7
/// times, and with dropout 2.5 times more each way.
/// Attention does 2 (head_dim + value_dim) operations a head, query and key; flash attention leaves
/// out what a causal mask (half) or a sliding window hides. Backward twice that, flash
/// attention 2.5 times (it computes the scores again: Dao 2023, section 3.1). The head includes the
/// fp32 cross-entropy over its share of the vocabulary, in one pass over the logits. `parts`:
/// attention is split into that many equal parts, of which one is returned (ring steps).
ModuleOperators operators_of(const Module& module, const RankSizes& sizes, Region region,
                             std::int64_t parts = 1);

/// An MoE's work on one rank.
struct MoeOperators {
  std::int64_t rows = 0;  ///< token copies this rank sends out, and gets back
  ModuleOperators router, permute, unpermute;
  ModuleOperators expert_in, expert_activation, expert_out;
  ModuleOperators shared_in, shared_activation, shared_out;  ///< empty without shared experts
};

/// Rows: local_tokens x topk x imbalance; or with a capacity factor experts x ceil(capacity x
/// local_tokens x topk / experts), padded (GShard, Lepikhin et al. 2021; Switch, Fedus et al.
/// 2022, section 2.2). The experts of a rank see rows x expert tp rows.
MoeOperators moe_operators(const Module& module, const RankSizes& sizes);

/// Token copies one rank dispatches in a pass of an MoE.
std::int64_t dispatched_rows(const Module& module, const RankSizes& sizes);

/// Parameters one rank holds.
struct ParameterCount {
  std::int64_t dense = 0;       ///< experts excluded
  std::int64_t expert = 0;      ///< of the routed experts
  std::int64_t replicated = 0;  ///< of `dense`: those that every tensor-parallel rank holds whole
  friend ParameterCount operator+(const ParameterCount& a, const ParameterCount& b) {
    return {detail::checked_add(a.dense, b.dense, "number of parameters"),
            detail::checked_add(a.expert, b.expert, "number of parameters"),
            detail::checked_add(a.replicated, b.replicated, "number of parameters")};
  }
  ParameterCount& operator+=(const ParameterCount& b) { return *this = *this + b; }
  friend bool operator==(const ParameterCount&, const ParameterCount&) = default;
};

/// A shared module (tied head) has none of its own but its bias. A norm has `in` weights (queries'
/// and keys' have those of one head) over `out` elements a token. Embeddings and heads have their
/// rows padded up to a multiple of tp.
ParameterCount parameters_of(const Module& module, const RankSizes& sizes);

/// Rows and width of what a rank keeps of `elements` features in a region.
std::int64_t rows_in(Region region, const RankSizes& sizes);
std::int64_t width_in(Region region, std::int64_t width, const RankSizes& sizes);
/// What a norm of heads normalises on a rank: one head at least.
std::int64_t norm_width_in(Region region, const Module& norm, const RankSizes& sizes);

}  // namespace lockstep
