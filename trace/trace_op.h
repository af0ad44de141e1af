#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep {

/// The kinds of operation in a trace of training steps, in the lexicographic order of their names
/// (which decides ties of start times).
enum class TraceOp : std::uint8_t {
  kBackwardCompute,
  kBackwardRecv,
  kBackwardSend,
  kBackwardTpComm,
  kEmbeddingGradsAllReduce,
  kForwardCompute,
  kForwardRecv,
  kForwardSend,
  kForwardTpComm,
  kGc,
  kGradsReduceScatter,
  kLayernormGradsAllReduce,
  kOptimizer,
  kOptimizerClip,
  kParamsAllGather,
  kSeparateGradsAllReduce,
  kWeightCompute,  ///< ours, as kWeightTpComm and the other two of those
  kWeightTpComm,
};

inline constexpr std::size_t kTraceOpCount = 18;

/// "backward-compute", …, "weight-tp-comm".
std::string_view to_text(TraceOp type);
/// The type of that name; nothing if there is none.
std::optional<TraceOp> trace_op_named(std::string_view name);
/// All names, in the order of the types.
const std::array<std::string_view, kTraceOpCount>& trace_op_names();

constexpr std::size_t index(TraceOp type) { return static_cast<std::size_t>(type); }
/// A pass, and what follows its computation: its transfers with the tensor-, context- and
/// expert-parallel peers of the worker, and the waiting for them. Split schedules have passes for
/// the gradients of weights.
struct TracePass {
  TraceOp compute, peer_comm;
};
inline constexpr std::array<TracePass, 3> kTracePasses = {
    {{TraceOp::kForwardCompute, TraceOp::kForwardTpComm},
     {TraceOp::kBackwardCompute, TraceOp::kBackwardTpComm},
     {TraceOp::kWeightCompute, TraceOp::kWeightTpComm}}};
constexpr bool is_compute(TraceOp t) {
  return t == TraceOp::kForwardCompute || t == TraceOp::kBackwardCompute ||
         t == TraceOp::kWeightCompute;
}
constexpr bool is_peer_comm(TraceOp t) {
  return t == TraceOp::kForwardTpComm || t == TraceOp::kBackwardTpComm ||
         t == TraceOp::kWeightTpComm;
}
/// The pass that a computation or its transfers belong to. PRECONDITION: it is one of them.
constexpr const TracePass& pass_of(TraceOp t) {
  return kTracePasses[t == TraceOp::kForwardCompute || t == TraceOp::kForwardTpComm     ? 0
                      : t == TraceOp::kBackwardCompute || t == TraceOp::kBackwardTpComm ? 1
                                                                                        : 2];
}
/// A send or receive between pipeline stages.
constexpr bool is_p2p(TraceOp t) {
  return t == TraceOp::kForwardSend || t == TraceOp::kForwardRecv || t == TraceOp::kBackwardSend ||
         t == TraceOp::kBackwardRecv;
}

}  // namespace lockstep
