#pragma once

#include <cstdint>

#include "simulator/collectives/algorithm.h"
#include "simulator/collectives/nccl_tuner.h"

namespace lockstep {

/// A request made complete as NCCL would, and the algorithm for it.
struct TunedRequest {
  const CollectiveAlgorithm* algorithm = nullptr;
  CollectiveRequest request;
  std::int32_t channels = 0;    ///< NCCL's; 0: it has none for this
  bool fewer_channels = false;  ///< than there are that differ, for the size alone
};

/// Fills in protocol, channels, slices, mesh and latencies by NCCL's choice (nccl_tuner.h).
/// `named`, if given, is the algorithm to use; one that NCCL does not have gets the latencies of
/// NCCL's send and receive, by the protocol Simple unless `wishes` names another. `own` stands for
/// an algorithm that is no plug-in: the same, and the result has no algorithm.
///
/// Channels of NCCL that repeat the same rings are one here: they share its links anyhow. Channels
/// that the request names stay. A ring's chunks above 128 KiB by Simple go in two slices, as NCCL's
/// do.
TunedRequest tune(CollectiveRequest request, const GroupShape& shape, const NcclFabric& fabric,
                  NcclWishes wishes = {}, const CollectiveAlgorithm* named = nullptr,
                  bool own = false);

/// For steps, in which ranks that do the same are simulated once (replay/step_fold.h). What NCCL
/// takes for a small collective may tell ranks apart, by a hop, for all that comes after; where it
/// does, it is replaced by what treats them alike and takes about as long:
///
///   - a tree, for a sum of at most 64 KiB: over 2^k ranks recursive doubling, as many steps up to
///     a factor of two; over other numbers "circulant", likewise, where servers have equally many;
///   - a ring on fewer channels than differ, which enters and leaves servers at some of their ranks
///     alone: its bytes go round on all of them, where servers have equal numbers of ranks. Hops
///     and their latencies stay. NCCL takes fewer channels only where a transfer has at most 8 KiB
///     by LL, or 64 KiB over the number of ranks, which takes far less than its latency.
void keep_ranks_alike(TunedRequest& tuned, const GroupShape& shape);

}  // namespace lockstep
