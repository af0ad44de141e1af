#pragma once

#include <cstdint>

#include "simulator/collectives/algorithm.h"
#include "simulator/collectives/nccl_tuner.h"

namespace lockstep {

/// A request made complete as NCCL would, and the algorithm for it.
struct TunedRequest {
  const CollectiveAlgorithm* algorithm = nullptr;
  CollectiveRequest request;
  std::int32_t channels = 0;  ///< NCCL's; 0: it has none for this
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

}  // namespace lockstep
