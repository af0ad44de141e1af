#pragma once

#include <array>
#include <cstdint>
#include <tuple>
#include <vector>

#include "analysis/whatif/op_table.h"

namespace lockstep::whatif {

using NodeList = std::vector<std::uint32_t>;

/// The nodes of one stage in start order: by (start, seq, type) of the reference step.
struct StageOps {
  std::int32_t stage = 0;
  std::array<NodeList, kTraceOpCount> by_type;
  NodeList compute;  ///< passes
  NodeList sync;     ///< parameters gathered and gradients scattered

  const NodeList& of(TraceOp type) const { return by_type[index(type)]; }
};

std::vector<StageOps> make_stage_ops(const OpTable& table);

/// Which of its dp_rank's microbatches a pass is of. Those that enter at the other end of the
/// pipeline (DualPipe) have numbers of their own.
inline std::int32_t microbatch_of(const OpTable& table, const OpNode& pass) {
  return pass.microbatch < 0 ? pass.seq
         : table.both_ways   ? 2 * pass.microbatch + pass.chunk
                             : pass.microbatch;
}

/// What passes of the same microbatch have in common, of a stage and chunk.
inline std::tuple<std::int32_t, std::int32_t, std::int32_t> stage_batch_of(const OpNode& pass) {
  return pass.microbatch >= 0 ? std::tuple(pass.stage, pass.chunk, pass.microbatch)
                              : std::tuple(pass.stage, -2, pass.seq);
}

/// In the reference step; what does not is beside the other.
inline bool ended_before(const OpTable& table, std::uint32_t before, std::uint32_t after) {
  constexpr float kSlack = 1e-6F;  // seconds
  return table.nodes[before].end_s <= table.nodes[after].start_s + kSlack;
}

}  // namespace lockstep::whatif
