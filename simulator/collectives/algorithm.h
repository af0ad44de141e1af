#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "simulator/collectives/nccl_fabric.h"
#include "simulator/collectives/protocol.h"
#include "simulator/collectives/schedule.h"

namespace lockstep {

/// Where the ranks of a group sit, for algorithms that care.
struct GroupShape {
  std::int32_t ranks = 0;
  /// Server of each rank, numbered from 0 in order of first appearance. One entry a rank.
  std::vector<std::int32_t> server;
  /// What NCCL would see of these servers, where the group is part of a topology
  /// (replay/fabric_of.h).
  NcclFabric fabric;
  friend auto operator<=>(const GroupShape&, const GroupShape&) = default;
};

/// The shape of a group whose ranks sit in these servers, which may be numbered in any way.
GroupShape group_shape(std::span<const std::int32_t> servers);

enum class CollectiveFlavour : std::uint8_t {
  kDefault,  ///< chunks are rounded up; rings change servers on one rail
  kSimai     ///< as SimAI's MockNccl: S/n/C with the remainder dropped, cross-rail rings
};

struct CollectiveRequest {
  CommType op = CommType::kNone;
  Bytes bytes;                ///< the full tensor, as in LayerPhase::bytes
  std::int32_t channels = 0;  ///< 0: the algorithm's own choice
  CollectiveFlavour flavour = CollectiveFlavour::kDefault;
  std::int32_t root = 0;  ///< of broadcast and reduce
  Protocol protocol = Protocol::kSimple;
  /// A server's GPUs are linked two by two, without a switch: rings in one server then take
  /// different links (rings.h).
  bool mesh = false;
  std::int32_t nvswitches = 1;      ///< of a server, among which what they add is shared out
  GpuArch arch = GpuArch::kHopper;  ///< decides what NVLS reaches and how many channels it has
  /// Each step of a ring goes in so many slices, so that one travels while the next is sent.
  std::int32_t slices = 1;
  /// Flavour simai: rings that add go from one server to the next by way of the local rank at which
  /// they enter a server, which stands on the rail of the one after it (SimAI's AS_PXN_ENABLE).
  bool relays = false;
  /// Software latency by kind of hop; unset: what the simulation charges every transfer alike.
  std::optional<HopLatency> hop_latency;
  /// What the ranks give or get where that is not equal: all-gather and reduce-scatter one size a
  /// rank, all-to-all ranks x ranks (from rank q / ranks to rank q mod ranks). Their sum, or for an
  /// all-to-all the largest sum that a rank sends, is `bytes`.
  std::vector<Bytes> sizes;
  friend auto operator<=>(const CollectiveRequest&, const CollectiveRequest&) = default;
};

/// A way to carry out collectives: one file in simulator/collectives/algorithms.
struct CollectiveAlgorithm {
  std::string_view name;     ///< "ring"
  std::string_view summary;  ///< one line
  std::span<const CommType> ops;
  /// Builds the DAG. Every group of equal shape gets the same one. Zero bytes are an empty schedule
  /// (a barrier's excepted); zero-byte chunks of SimAI's rounding are transfers still, since they
  /// cost their latency. PRECONDITION: op is in `ops`, shape.ranks >= 2, bytes >= 0,
  /// 0 <= root < ranks. ERRORS: Error when it would have more than kMaxSlots.
  Schedule (*build)(const CollectiveRequest& request, const GroupShape& shape);
  /// Declares, where it is set, that no slot waits and that every permutation of the ranks that
  /// keeps servers together maps the slots onto themselves, but for their channels: then those that
  /// leave a rank, which it builds, tell what all do, and a fabric that has the symmetry can be
  /// folded without building the rest (declared_fold.h). PRECONDITION: request.sizes is empty.
  Schedule (*build_leaving)(const CollectiveRequest& request, const GroupShape& shape,
                            std::int32_t rank) = nullptr;
};

/// Builds a schedule and marks it with the request's protocol and latencies and with the servers
/// of the ranks, which algorithms need not care about. Use this, not `build`.
Schedule build_schedule(const CollectiveAlgorithm& algorithm, const CollectiveRequest& request,
                        const GroupShape& shape);
/// The same marks on a schedule that comes from elsewhere.
Schedule mark_schedule(Schedule schedule, const CollectiveRequest& request,
                       const GroupShape& shape);

/// All algorithms, by file name.
std::span<const CollectiveAlgorithm* const> collective_algorithms();

}  // namespace lockstep
