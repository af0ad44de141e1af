#include "topologies/servers.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep {

Servers servers_from(const FlagValues& flags, std::int64_t gpus) {
  Servers s;
  s.gpus = gpus;
  s.gpus_per_server = flags.count("gpus-per-server");
  s.nvswitches_per_server = flags.count("nvswitches-per-server");
  s.gpu_type = flags.text("gpu-type");
  s.nvlink_rate = flags.text("nvlink");
  s.nvlink_delay = flags.text("nvlink-delay");
  s.nic_rate = flags.text("nic");
  s.delay = flags.text("delay");
  s.error_rate = flags.text("error-rate");
  if (gpus % s.gpus_per_server != 0) {
    throw Error(fmt::format("{} GPUs do not fill servers of {}", gpus, s.gpus_per_server))
        .field("flag gpus-per-server")
        .expected(fmt::format("a divisor of {}", gpus));
  }
  return s;
}

std::string file_name(std::string_view stem, const Servers& servers) {
  std::string name = fmt::format("{}_{}g_{}gps_{}_{}", stem, servers.gpus, servers.gpus_per_server,
                                 servers.nic_rate, servers.gpu_type);
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

void add_servers(TopologyMaker& maker, const Servers& servers) {
  const std::int16_t type = maker.gpu_type(servers.gpu_type);
  for (std::int64_t i = 0; i < servers.gpus; ++i) {
    maker.add_gpu(static_cast<std::int32_t>(i / servers.gpus_per_server), type);
  }
  for (std::int64_t i = 0; i < servers.nvswitches(); ++i) {
    maker.add_nvswitch(static_cast<std::int32_t>(i / servers.nvswitches_per_server));
  }
}

void link_servers(TopologyMaker& maker, const Servers& servers,
                  const std::function<NodeId(std::int64_t)>& switch_of) {
  const std::int32_t nvlink =
      servers.nvswitches_per_server > 0
          ? maker.link_class(servers.nvlink_rate, servers.nvlink_delay, servers.error_rate)
          : -1;
  const std::int32_t nic = maker.link_class(servers.nic_rate, servers.delay, servers.error_rate);
  for (std::int64_t i = 0; i < servers.gpus; ++i) {
    const std::int64_t first_nvswitch =
        servers.gpus + i / servers.gpus_per_server * servers.nvswitches_per_server;
    for (std::int64_t j = 0; j < servers.nvswitches_per_server; ++j) {
      maker.link(node_id(i), node_id(first_nvswitch + j), nvlink);
    }
    maker.link(node_id(i), switch_of(i), nic);
  }
}

std::int64_t add_switches(TopologyMaker& maker, std::int64_t count) {
  const auto first = static_cast<std::int64_t>(maker.node_count());
  for (std::int64_t i = 0; i < count; ++i) {
    maker.add_switch();
  }
  return first;
}

}  // namespace lockstep
