#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep {

/// The kinds of operation in a trace of training steps, in the lexicographic order of their names
/// (which decides ties of start times).
enum class OpType : std::uint8_t {
  kBackwardCompute,
  kBackwardRecv,
  kBackwardSend,
  kEmbeddingGradsAllReduce,
  kForwardCompute,
  kForwardRecv,
  kForwardSend,
  kGc,
  kGradsReduceScatter,
  kLayernormGradsAllReduce,
  kOptimizer,
  kOptimizerClip,
  kParamsAllGather,
  kSeparateGradsAllReduce,
};

inline constexpr std::size_t kOpTypeCount = 14;

/// "backward-compute", …, "separate-grads-all-reduce".
std::string_view to_text(OpType type);
/// The type of that name; nothing if there is none.
std::optional<OpType> op_type_named(std::string_view name);
/// All names, in the order of the types.
const std::array<std::string_view, kOpTypeCount>& op_type_names();

constexpr std::size_t index(OpType type) { return static_cast<std::size_t>(type); }
constexpr bool is_compute(OpType t) {
  return t == OpType::kForwardCompute || t == OpType::kBackwardCompute;
}
/// A send or receive between pipeline stages.
constexpr bool is_p2p(OpType t) {
  return t == OpType::kForwardSend || t == OpType::kForwardRecv || t == OpType::kBackwardSend ||
         t == OpType::kBackwardRecv;
}

}  // namespace lockstep
