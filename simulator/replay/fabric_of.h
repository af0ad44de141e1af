#pragma once

#include <vector>

#include "base/ids.h"
#include "simulator/collectives/nccl_fabric.h"
#include "topologies/topology.h"

namespace lockstep {

/// What NCCL would see of the server that the first of these GPUs is in: architecture by the GPU's
/// type, NVLink as the sum of its links to NVSwitches or other given GPUs, NICs as the links of the
/// given GPUs to switches. Hosts of Ampere GPUs are taken for AMD, others for Intel. O(links).
NcclFabric fabric_of(const Topology& topology, const std::vector<NodeId>& gpus);

/// How many links a GPU has to switches. O(links).
std::int32_t nic_ports(const Topology& topology, NodeId gpu);

}  // namespace lockstep
