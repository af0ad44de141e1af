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

/// With rail affinity a GPU's channels take its `ports` NIC ports by turns, so that those which
/// repeat a ring or a tree do not share its links: as many times those that differ as a GPU has
/// ports, if NCCL has so many. Channels that the request names stay.
void use_all_ports(TunedRequest& tuned, const GroupShape& shape, std::int32_t ports);

/// For steps, in which ranks that do the same are simulated once (replay/step_fold.h). What NCCL
/// takes for a small collective may tell ranks apart, by a hop, for all that comes after; where it
/// does, it is replaced by what treats them alike and takes about as long:
///
///   - a tree, for a sum of at most 64 KiB: where servers have equally many ranks "circulant",
///     which takes at most as many rounds between them, up to a factor of two; else, over 2^k
///     ranks, recursive doubling;
///   - a ring on fewer channels than differ, which enters and leaves servers at some of their ranks
///     alone: its bytes go round on all of them, where servers have equal numbers of ranks. Hops
///     and their latencies stay. NCCL takes fewer channels only where a transfer has at most 8 KiB
///     by LL, or 64 KiB over the number of ranks, which takes far less than its latency.
void keep_ranks_alike(TunedRequest& tuned, const GroupShape& shape);

/// Likewise, for a group within one server whose GPUs an NVSwitch joins. A rank of a ring has its
/// place before or behind one that is slow; where everyone exchanges with everyone at once
/// ("hierarchical" in one server) all but the slow one are alike. The same bytes go through the
/// same ports, and where it is done the time is the ring's, with all entering at once and after
/// late ranks (tests/property/server_exchange_property_test.cc):
///
///   - a ring over the whole server that gathers or scatters, where a slice takes at least as
///     long as a hop, which it then hides but once. (With part of the server other groups have
///     the same links, of which several transfers would take a larger share than one.)
///   - a ring or tree that sums less than 2 MiB: its 2 (n - 1) hops become two rounds of n - 1
///     each. After a late rank, which sends both rounds at once, it takes up to a sixth longer
///     above 64 KiB; that is why larger sums keep their rings.
///
/// Links of the server must be alike: what a slow one is to carry to a late rank waits in a ring,
/// and has gone ahead here. Where each rank is late in a way of its own there is nothing to win.
void exchange_within_server(TunedRequest& tuned, const GroupShape& shape, const NcclFabric& fabric,
                            std::int32_t gpus_per_server);

}  // namespace lockstep
