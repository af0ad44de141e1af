#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "analysis/whatif/no_ops.h"
#include "analysis/whatif/stage_ops.h"
#include "base/warnings.h"

namespace lockstep::whatif {

/// `after` starts no earlier than `before` ends.
struct Edge {
  std::uint32_t after = 0, before = 0;
  auto operator<=>(const Edge&) const = default;
};

/// Where parameters are gathered.
enum class Gathers {
  kBefore,              ///< before the first pass
  kInPasses,            ///< within each
  kInPassesOfReplicas,  ///< the same, among the dp_ranks of a replica
};

/// The edges between operations of one worker: its streams, what a transfer waits for and who waits
/// for it, and the operations that end a step. Duplicates are possible.
/// ERRORS: a stage without the operations that end a step.
std::vector<Edge> in_rank_edges(const OpTable& table, const StageOps& ops,
                                const std::vector<TransferMatch>& matches, bool data_parallel,
                                bool overlap, Gathers gathers, const std::string& file,
                                Warnings* warnings);

}  // namespace lockstep::whatif
