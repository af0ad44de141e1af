#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "topologies/builder.h"
#include "topologies/topology_maker.h"

namespace lockstep {

/// Equal servers: GPUs, the NVSwitches that join them, and a NIC for each GPU.
struct Servers {
  std::int64_t gpus = 0, gpus_per_server = 8, nvswitches_per_server = 1;
  std::string gpu_type, nvlink_rate, nvlink_delay, nic_rate, delay, error_rate;

  std::int64_t nvswitches() const { return gpus / gpus_per_server * nvswitches_per_server; }
  /// Links to NVSwitches and one NIC link for each GPU.
  std::int64_t links() const { return gpus * (nvswitches_per_server + 1); }
};

/// What differs between templates in the flags all of them share.
struct ServerDefaults {
  std::string_view gpus_per_server = "8", nvlink = "2880Gbps", nic = "400Gbps", gpu_type = "H100";
};

constexpr std::array<BuilderFlag, 8> server_flags(const ServerDefaults& d = {}) {
  using enum FlagKind;
  return {{
      {"gpus-per-server gpu_per_server gps", kCount, d.gpus_per_server,
       "GPUs in a server (an NVLink domain)", 1, 1 << 20},
      {"gpu-type gt", kWord, d.gpu_type, "GPU type", 0, 0},
      {"nvswitches-per-server nv_switch_per_server nsps", kCount, "1",
       "NVSwitches in a server, 0 for none", 0, 64},
      {"nvlink nvlink_bw nvbw", kRate, d.nvlink, "rate from GPU to each NVSwitch", 0, 0},
      {"nvlink-delay nv_latency nl", kDelay, "0.000025ms", "delay from GPU to NVSwitch", 0, 0},
      {"nic bandwidth bw", kRate, d.nic, "rate from GPU to its switch", 0, 0},
      {"delay latency l", kDelay, "0.0005ms", "delay of every network link", 0, 0},
      {"error-rate er", kProbability, "0", "loss probability of a packet on every link", 0, 0},
  }};
}

template <std::size_t N, std::size_t M>
constexpr std::array<BuilderFlag, N + M> operator+(const std::array<BuilderFlag, N>& a,
                                                   const std::array<BuilderFlag, M>& b) {
  std::array<BuilderFlag, N + M> all{};
  for (std::size_t i = 0; i < N + M; ++i) {
    all[i] = i < N ? a[i] : b[i - N];
  }
  return all;
}

/// The flags of server_flags(). ERRORS: a last server that is not full.
Servers servers_from(const FlagValues& flags, std::int64_t gpus);

/// "{stem}_{g}g_{gps}gps_{rate}_{type}", fit for a file name.
std::string file_name(std::string_view stem, const Servers& servers);

/// Adds all GPUs, then all NVSwitches. PRECONDITION: the maker is empty.
void add_servers(TopologyMaker& maker, const Servers& servers);

/// Links each GPU to the NVSwitches of its server, then to switch_of(GPU number).
void link_servers(TopologyMaker& maker, const Servers& servers,
                  const std::function<NodeId(std::int64_t)>& switch_of);

/// Adds `count` switches with ids in a row and returns the first id.
std::int64_t add_switches(TopologyMaker& maker, std::int64_t count);

inline NodeId node_id(std::int64_t i) { return NodeId(static_cast<std::size_t>(i)); }

}  // namespace lockstep
