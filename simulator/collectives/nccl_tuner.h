#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "simulator/collectives/algorithm.h"
#include "simulator/collectives/nccl_fabric.h"

namespace lockstep {

enum class NcclAlgorithm : std::uint8_t {
  kRing,
  kTree,
  kNvls,
  kNvlsTree,
  kPat,
  kCollnetDirect,
  kCollnetChain,
  kPointToPoint
};

/// One way in which NCCL could carry out a collective, with the time that its own model predicts.
/// That model is a selector; do not take the time for a prediction of ours.
struct NcclCandidate {
  NcclAlgorithm algorithm = NcclAlgorithm::kRing;
  Protocol protocol = Protocol::kSimple;
  double latency_us = 0;
  double bandwidth_GBps = 0;  ///< algorithm bandwidth
  double time_us = 0;
};

/// What NCCL would do, and the software latencies of its way of doing it.
struct NcclChoice {
  NcclAlgorithm algorithm = NcclAlgorithm::kRing;
  Protocol protocol = Protocol::kSimple;
  std::int32_t channels = 1;         ///< that this size uses
  std::int32_t channels_of_all = 1;  ///< that the communicator has
  bool same_order = true;            ///< in which all channels pass the ranks
  HopLatency hops;
};

/// What a user may fix; the rest is NCCL's choice (NCCL_ALGO, NCCL_PROTO).
struct NcclWishes {
  NcclVersion version;
  std::optional<NcclAlgorithm> algorithm;
  std::optional<Protocol> protocol;
};

/// What of a group's shape matters to NCCL's choice.
struct NcclGroup {
  std::int32_t ranks = 1, servers = 1;
  std::int32_t fewest = 1;  ///< ranks on the server that has the fewest
};

/// PRECONDITION: the shape has a rank. O(ranks).
NcclGroup nccl_group(const GroupShape& shape);

/// NCCL's table of candidates, by its model: time = latency + size / bandwidth. Sources: NCCL's
/// src/graph/tuning.cc (base and hop latencies, caps, the tree's size table), search.cc (speeds and
/// channels per graph, of which only the outcome on symmetric servers is modelled) and enqueue.cc
/// (channels by size), releases 2.8 to 2.30; docs/models.md tells what is left out.
std::vector<NcclCandidate> nccl_candidates(CommType op, Bytes bytes, const NcclGroup& group,
                                           const NcclFabric& fabric, const NcclWishes& wishes);

/// The candidate with the least time, its channels and latencies. All-to-all, send/receive and
/// barrier have no candidates: point to point, LL up to 16 KiB a peer.
/// ERRORS: Error when NCCL has no such combination for the operation.
NcclChoice nccl_choice(CommType op, Bytes bytes, const NcclGroup& group, const NcclFabric& fabric,
                       const NcclWishes& wishes);

/// Channels of the communicator: two for each ring or tree that the graph search finds.
std::int32_t nccl_channels(const NcclGroup& group, const NcclFabric& fabric);

/// Our algorithm that does what NCCL's does for this operation: "ring", "chain", …
std::string_view our_name(NcclAlgorithm algorithm, CommType op, std::int32_t ranks);
/// The other way; nothing for algorithms that NCCL does not have.
std::optional<NcclAlgorithm> nccl_algorithm_named(std::string_view our_name);

}  // namespace lockstep
