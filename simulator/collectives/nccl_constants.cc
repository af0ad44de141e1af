#include "simulator/collectives/nccl_constants.h"

#include <algorithm>

#include "simulator/collectives/nvswitch.h"

namespace lockstep {
namespace {

/// Rows by architecture: Volta, Ampere, Hopper, Blackwell.
using ByArch = std::array<ByServers, 4>;

constexpr ByArch kLlMost = {{{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}}};
constexpr ByArch kRingLl128 = {{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {40, 40, 40}}};
constexpr ByArch kTreeLl128 = {{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}}};
constexpr ByArch kTree = {{{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}}};
constexpr ByArch kNvlsTree = {{{26.5, 18.5, 10}, {24, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96, 80}}};
constexpr double kNoCap = 1e9;

/// Release 2.30.7.
NcclConstants newest(std::size_t arch) {
  NcclConstants c{};
  c.ring_base = {6.6, 14.0, 8.4};
  c.tree_base = {6.8, 14.0, 8.4};
  c.ring_nvlink = {0.6, 1.9, 3.4};
  c.ring_pci = {1.0, 2.5, 5.7};
  c.ring_net = {2.7, 4.0, 14.0};
  c.tree_nvlink = {0.6, 1.25, 4.0};
  c.tree_pci = {1.0, 1.9, 4.0};
  c.tree_net = {5.0, 8.5, 14.0};
  c.nvls_nvlink = 25;
  c.nvls_tree_net = 20.9;
  c.collnet_direct_nvlink = 3.7;
  c.collnet_direct_net = 31;
  c.collnet_chain_nvlink = 2.8;
  c.collnet_chain_net = 30;
  c.pat_base = 8;
  c.pat_net = 14;
  c.pat_factor = 0.75;
  c.ll_most = kLlMost[arch];
  c.ring_ll_factor = c.ring_ll_factor_servers = 0.5;
  c.ring_ll128_channel = kRingLl128[arch];
  c.tree_ll128_channel = kTreeLl128[arch];
  c.tree_channel = kTree[arch];
  c.nvls_tree_channel = kNvlsTree[arch];
  c.tree_one_gpu = 0.85;
  c.ring_servers_less = 1;
  c.nvls_efficiency = nvls_percent(GpuArch(arch)) / 100.0;
  c.has_nvls = c.has_pat = true;
  return c;
}

}  // namespace

NcclConstants nccl_constants(NcclVersion version, const NcclFabric& fabric) {
  const auto arch = static_cast<std::size_t>(fabric.arch);
  const auto hopper = static_cast<std::size_t>(GpuArch::kHopper);
  const auto ampere = static_cast<std::size_t>(GpuArch::kAmpere);
  NcclConstants c = newest(arch);
  // Between servers the cap on LL goes by the host's processors.
  const ByServers& host = kLlMost[fabric.amd_host ? ampere : 0];
  c.ll_most = {c.ll_most[0], host[1], host[2]};
  const std::int32_t v = version.number;
  c.nvls_tree_by_size = fabric.arch == GpuArch::kBlackwell && !fabric.grace_host && v >= 22800;
  if (v < 22900) {
    c.nvls_tree_net = v >= 22600 ? 14 : 20.9;
  }
  if (v < 22800) {
    c.nvls_tree_channel = {kNoCap, kNoCap, kNoCap};
    c.nvls_efficiency = 0.85;
    if (arch > hopper) {  // Blackwell was twice a Hopper
      for (ByServers* row : {&c.tree_channel, &c.tree_ll128_channel, &c.ring_ll128_channel}) {
        const ByArch& table = row == &c.tree_channel         ? kTree
                              : row == &c.tree_ll128_channel ? kTreeLl128
                                                             : kRingLl128;
        std::ranges::transform(table[hopper], row->begin(), [](double x) { return 2 * x; });
      }
    }
  }
  if (v < 22600) {
    c.pat_factor = 0.85;
  }
  if (v < 22300) {
    c.has_pat = false;
  }
  if (v >= 21800 && v < 22300) {
    c.tree_base[2] = 0;
    c.tree_simple_hop = v >= 22000 ? 28 : 0;
    c.tree_one_gpu = v >= 22000 ? 0.85 : 1;
    c.ring_servers_less = 0;
  }
  if (v < 22200) {
    c.ring_ll_factor = 1.0 / 3;
    c.ring_ll_factor_servers = 1.0 / 4;
    if (arch >= hopper) {
      c.ll_most[0] = kLlMost[ampere][0];
    }
  }
  if (v < 22000) {
    c.nvls_base = 23;
    c.nvls_tree_net = 19;
    c.collnet_direct_net = 10.7;
  }
  if (v < 21800) {
    c.has_nvls = false;
    c.ring_base = {3.6, 10.0, 8.4};
    c.tree_base = {4.4, 4.4, 0};
    c.ring_net[2] = 9.6;
    c.ring_nvlink[0] = 0.47;
    c.tree_nvlink[0] = 0.52;
    c.tree_simple_hop = 28;
    c.tree_one_gpu = 1;
    c.ring_servers_less = v < 20900 ? 1 : 0;
  }
  if (v < 20900) {
    c.tree_nvlink[1] = 1.2;
    c.tree_nvlink[2] = c.tree_pci[2] = c.tree_net[2] = 28;
    c.ll_most = {kNoCap, kNoCap, kNoCap};
  }
  return c;
}

double shortest_hop_us(const NcclConstants& c) {
  double least = c.ring_nvlink[0];
  for (const ByProtocol* hops :
       {&c.ring_nvlink, &c.ring_pci, &c.ring_net, &c.tree_nvlink, &c.tree_pci, &c.tree_net}) {
    least = std::min(least, *std::ranges::min_element(*hops));
  }
  return least;
}

}  // namespace lockstep
