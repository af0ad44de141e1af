#pragma once

#include <map>
#include <span>
#include <vector>

#include "base/ids.h"
#include "simulator/collectives/algorithm.h"
#include "simulator/collectives/nccl_fabric.h"
#include "topologies/topology.h"

namespace lockstep {

/// What NCCL would see of the servers that these GPUs are in: architecture by the GPUs' type,
/// NVLink as the sum of a GPU's links to NVSwitches or other given GPUs, NICs as the links of a
/// server's given GPUs to switches. Where GPUs or servers differ it is the least of each, as NCCL's
/// ranks agree on the least that one of them found; NVLinks are those of servers with several of
/// the GPUs, where there are any. Hosts of Ampere GPUs are taken for AMD, others for Intel.
/// O(links).
NcclFabric fabric_of(const Topology& topology, const std::vector<NodeId>& gpus);

/// The GPUs of the server that a topology's first GPU is in.
std::vector<NodeId> gpus_of_first_server(const Topology& topology);

/// How many links each of these GPUs has to switches, at least. O(links).
std::int32_t nic_ports(const Topology& topology, const std::vector<NodeId>& gpus);

/// The same for any group of a topology's GPUs, of whose servers it sees all GPUs and NICs.
class ServerFabrics {
 public:
  /// O(links).
  explicit ServerFabrics(const Topology& topology);

  /// The shape of a group whose ranks are in these servers of the topology, with its fabric.
  GroupShape shape_of(std::span<const std::int32_t> servers) const;

 private:
  std::map<std::int32_t, NcclFabric> of_;  ///< by server
  bool alike_ = true;                      ///< all servers
};

}  // namespace lockstep
