#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "simulator/replay/program.h"
#include "simulator/replay/replay.h"

namespace lockstep {

/// What a rank holds, as far as its passes decide when.
struct RankMemory {
  Bytes always;             ///< weights, gradients, optimizer state
  std::vector<Bytes> kept;  ///< per model chunk: from a microbatch's forward pass to the
                            ///< end of its backward pass
  Bytes within_forward, within_backward;  ///< besides, while such a pass is under way
  /// Besides, where backward passes are split: per model chunk, from the input part's begin to the
  /// weights' part's end.
  std::vector<Bytes> again = {};
};

/// From `when` on a rank holds `held`.
struct MemoryPoint {
  Time when;
  Bytes held;
};

/// A rank's memory over the step.
struct MemoryTimeline {
  std::int32_t rank = 0, stage = 0;
  Bytes peak;
  Time peak_at;                     ///< the first time that it is reached
  std::vector<MemoryPoint> points;  ///< in order of time, each different from the one before
};

/// `timing` is that of the program's operations on the rank. A pass lasts from its first
/// operation's begin to its last one's end; where gradients of weights are a pass of their own,
/// activations are kept until its end. What ends gives its memory back before what begins then
/// takes some. Forward and backward passes under way at once need the larger of the two.
/// O(operations log operations).
MemoryTimeline memory_timeline(const Program& program, std::span<const OpTiming> timing,
                               const RankMemory& memory);

}  // namespace lockstep
