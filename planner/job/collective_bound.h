#pragma once

#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "base/units.h"
#include "planner/job/group_shapes.h"
#include "simulator/collectives/nccl_fabric.h"
#include "workloads/comm.h"

namespace lockstep {

/// Rates in place of a cluster's own, as factors: what a choice would be if links, latencies or
/// GPUs were other.
struct Speeds {
  double compute = 1, nvlink = 1, nic = 1, latency = 1;
  friend bool operator==(const Speeds&, const Speeds&) = default;
};

/// No rank of any group ends the collective sooner after the first of its group has entered, in
/// seconds, when it is carried out as NCCL would (simulator/collectives/tune.h). Whatever else the
/// network carries only adds to it. By algorithm, with n ranks of which at most g are in one of k
/// servers, S the full tensor on the wire (protocol flags included), V the NVLinks of a GPU, N the
/// NICs of the group in a server, per direction:
///
///   ring           each rank must get all steps' chunks: on one server q S / n / V for q = n - 1
///                  or 2 (n - 1) steps; on several, those that come over a server's NICs, all but
///                  the last g - 1: (q - g + 1) S / n / N. Or the latencies of q hops in a row, of
///                  which a chunk's way crosses servers k - 1 times a round.
///   nvls           the NVSwitch adds and multicasts: what a rank sends or gets at least, S or
///                  (n - 1)/n S, over V
///   tree, nvls-tree  every rank gets S, every server takes in S: S / V or S / N
///   pairwise, direct  what a rank gets from its own server over V, from others over its NIC
///   send           S over the faster kind of link that a neighbour may be on
///   others, and sums of at most 64 KiB   the kernel's start alone
///
/// The larger of these, plus the start and one hop. What comes from other servers is counted where
/// it comes in: with PXN it may leave by any NIC of its server, but it comes in by the NIC of the
/// rank that it is for.
class CollectiveBound {
 public:
  /// Rank r is the topology's r-th GPU, or on gpus[r]. PRECONDITION: the topology has a GPU.
  explicit CollectiveBound(const Topology& topology, const Speeds& speeds = {});
  CollectiveBound(const Topology& topology, const std::vector<NodeId>& gpus,
                  const Speeds& speeds = {});

  /// 0 for groups of one rank and no bytes. `replicas`: as GroupShapes::of().
  double least_s(const RankLayout& layout, RankGroup kind, CommType comm, Bytes bytes,
                 std::int64_t replicas = 1);
  /// Of groups that no layout describes: their shapes, and what each takes at least.
  std::vector<PlacedShape> shapes_of(std::span<const std::vector<std::int32_t>> groups) const {
    return shapes_.of(groups);
  }
  double least_s(std::span<const PlacedShape> shapes, CommType comm, Bytes bytes) const;

 private:
  double of_shape(const PlacedShape& placed, CommType comm, Bytes bytes) const;
  double of_fabric(const PlacedShape& placed, const NcclFabric& fabric, CommType comm,
                   Bytes bytes) const;

  GroupShapes shapes_;
  Speeds speeds_;
  std::map<std::tuple<const PlacedShape*, CommType, Bytes>, double> known_;
};

}  // namespace lockstep
