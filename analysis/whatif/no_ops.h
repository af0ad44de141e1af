#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/whatif/dependency_graph.h"
#include "analysis/whatif/stage_ops.h"

namespace lockstep::whatif {

/// A send or receive and the compute operation (of its direction and stage) it serves.
struct TransferMatch {
  std::uint32_t transfer = 0;
  std::uint32_t compute = 0;
};

struct TransferMatches {
  std::vector<TransferMatch> matches;
  std::vector<NoOp> no_ops;  ///< of each node
};

/// Which compute operation each send and receive serves, and which were never launched.
///
/// A profiler records sends and receives that were skipped. kUnmatched: a receive that starts
/// 50 us after the last compute operation of its direction has started, or a send that ends 50 us
/// before the first has ended. The others serve the compute operations in order; a receive list
/// that is one short begins with the second. kNoPeer: with g the chunk of the whole model it
/// serves and G chunks in all, a forward send of the last chunk, a backward receive of the last
/// one, a forward receive and a backward send of the first.
/// ERRORS: a list as long as no schedule makes it.
TransferMatches match_transfers(const OpTable& table, std::span<const StageOps> stages,
                                const std::string& file);

}  // namespace lockstep::whatif
