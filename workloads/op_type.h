#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep {

/// What an operation is for. The names are those of what-if traces (StragglerAnalysis, OSDI'25)
/// where these have one; all that happens within a pass of a microbatch, its transfers between
/// tensor-, context- and expert-parallel ranks included, is of the pass's type.
enum class OpType : std::uint8_t {
  kOther,                ///< "other"
  kForward,              ///< "forward-compute"
  kBackward,             ///< "backward-compute"; the input's gradient alone where passes are split
  kWeightGradient,       ///< "weight-compute": a backward pass's other part
  kForwardSend,          ///< "forward-send": to the next stage
  kForwardReceive,       ///< "forward-recv"
  kBackwardSend,         ///< "backward-send": to the stage before
  kBackwardReceive,      ///< "backward-recv"
  kGatherParameters,     ///< "params-all-gather"
  kReduceGradients,      ///< "grads-reduce-scatter", all-reduces too
  kTiedEmbedding,        ///< "embedding-grads-all-reduce"
  kReplicatedGradients,  ///< "layernorm-grads-all-reduce"
  kClip,                 ///< "optimizer-clip-main-grad"
  kOptimizer,            ///< "optimizer"
  kLoss,                 ///< "loss-all-reduce"
};
inline constexpr int kOpTypes = static_cast<int>(OpType::kLoss) + 1;

std::string_view name_of(OpType type);
std::optional<OpType> op_type_named(std::string_view name);

}  // namespace lockstep
