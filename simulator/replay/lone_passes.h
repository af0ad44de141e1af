#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "base/units.h"
#include "simulator/replay/interference.h"
#include "workloads/workload.h"

namespace lockstep {

/// A pass of a stage: kForward, kBackward or kWeightGradient, chunk, microbatch.
using PassKey = std::tuple<OpType, std::int32_t, std::int32_t>;

/// How long a worker would wait for transfers if its peers entered each of them when it does: what
/// its own computation hides stays hidden, and nobody is late.
struct LonePasses {
  std::map<PassKey, Time> waits;            ///< in each pass, beside its computing
  std::map<PassKey, Time> computes;         ///< in each pass
  std::map<PassKey, Time> undisturbed;      ///< the same beside no collectives
  std::map<std::int32_t, Time> reductions;  ///< of each chunk's gradients, behind its last pass
  /// Of the gradients of a chunk and microbatch, where nothing was left to be reduced before: what
  /// is hidden beside the pass, and what is left behind it.
  struct Reduction {
    Time beside, behind;
  };
  /// By chunk (0 where the operation has none) and microbatch.
  std::map<std::pair<std::int32_t, std::int32_t>, Reduction> reductions_of_passes;
  std::optional<Time> clip;  ///< computing included, where gradients are clipped
};

/// By playing its program alone: operations start in the order of their streams, behind those that
/// they come after, and the host runs ahead. `takes`, one an operation: how long it computes beside
/// nothing, or the network needs for a transfer once all are there, or when a message from another
/// stage is; `taken`, of its collectives, is what `interference`
/// asks for (empty: nothing). A pass begins with its first operation, or where parameters are
/// gathered within passes when all before it has ended; where some `take_turns` (DualPipe,
/// 1f1b-overlap) those begin together, and none waits for what the other computes. O(n log n) in
/// the operations and dependencies.
LonePasses lone_passes(const OpProgram& program, std::span<const Time> takes,
                       const Interference& interference = {},
                       std::span<const std::int32_t> taken = {}, bool take_turns = false);

}  // namespace lockstep
