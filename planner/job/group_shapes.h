#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "generator/exact/groups.h"
#include "simulator/collectives/algorithm.h"
#include "simulator/replay/fabric_of.h"
#include "topologies/topology.h"

namespace lockstep {

/// Where the ranks of some equally placed groups lie, and the most that their links carry.
struct PlacedShape {
  GroupShape shape;
  /// What NCCL would see of the servers of a rank and its next (round the end), each once.
  std::vector<NcclFabric> pairs;
  std::int32_t servers = 1;
  std::int32_t most = 1;      ///< ranks of the group in one server, at most
  bool local_pair = false;    ///< some rank's next (round the end) is in its own server
  double nvlink_Bps = 0;      ///< one direction, of the rank that has most
  double nic_Bps = 0;         ///< likewise, of one rank
  double server_nic_Bps = 0;  ///< of all the group's ranks in a server, where it is most
};

/// The shapes that the groups of a kind have on a topology, each once, worked out when first asked
/// for. Not for two threads at once.
class GroupShapes {
 public:
  /// Rank r is on gpus[r].
  GroupShapes(const Topology& topology, const std::vector<NodeId>& gpus);

  /// Groups of a kind cut into `replicas` consecutive blocks each (hybrid sharding); groups of one
  /// rank are left out. O(gpus) the first time. PRECONDITION: check_layout(layout), no more GPUs
  /// than the topology has, replicas divides the groups' size.
  const std::vector<PlacedShape>& of(const RankLayout& layout, RankGroup kind,
                                     std::int64_t replicas = 1);
  /// Of the groups given. O(their ranks).
  std::vector<PlacedShape> of(std::span<const std::vector<std::int32_t>> groups,
                              std::int64_t replicas = 1) const;

 private:
  ServerFabrics fabrics_;
  std::vector<std::int32_t> server_;  // of each rank
  std::vector<double> nvlink_, nic_;  // of each rank, bytes per second
  /// The layout's degrees and order, the kind, the replicas.
  using Key = std::tuple<std::array<std::int64_t, 6>, std::string, RankGroup, std::int64_t>;
  std::map<Key, std::vector<PlacedShape>> known_;
};

}  // namespace lockstep
