#pragma once

#include <array>
#include <cstdint>

#include "simulator/collectives/nccl_fabric.h"

namespace lockstep {

/// By protocol: LL, LL128, Simple, as NCCL's tables are written.
using ByProtocol = std::array<double, 3>;
/// By number of servers: one, two, more.
using ByServers = std::array<double, 3>;

/// The constants of NCCL's tuner for a release and an architecture: microseconds and GB/s.
struct NcclConstants {
  ByProtocol ring_base, tree_base;
  ByProtocol ring_nvlink, ring_pci, ring_net;  ///< latency of a hop
  ByProtocol tree_nvlink, tree_pci, tree_net;
  double nvls_nvlink, nvls_tree_net, nvls_base;
  double collnet_direct_nvlink, collnet_direct_net, collnet_chain_nvlink, collnet_chain_net;
  double pat_base, pat_net, pat_factor;  ///< factor: of bandwidth
  ByServers ll_most;                     ///< GB/s of a collective by LL; more servers: by host
  double ring_ll_factor, ring_ll_factor_servers;  ///< of bus bandwidth; all-reduce or servers > 1
  ByServers ring_ll128_channel, tree_ll128_channel, tree_channel, nvls_tree_channel;
  double tree_simple_hop;  ///< of any link, in trees by Simple, if not 0: a chunk's (tuner only)
  double tree_one_gpu;     ///< bandwidth of trees whose way up and down are at one GPU, of others'
  double ring_servers_less;  ///< an all-reduce's ring leaves servers 2 (N - this) times
  double nvls_efficiency;
  bool nvls_tree_by_size;  ///< NVLSTree has the tree's table of bandwidths by size, too
  bool has_nvls, has_pat;
};

NcclConstants nccl_constants(NcclVersion version, const NcclFabric& fabric);

/// Microseconds: no transfer of such a release starts sooner after what it waits for.
double shortest_hop_us(const NcclConstants& constants);

}  // namespace lockstep
