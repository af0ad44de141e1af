#include "app/simulate/analytic_topology.h"

#include <algorithm>
#include <map>
#include <optional>

namespace lockstep {
namespace {

/// Of the job's GPUs in one server.
struct Nics {
  std::optional<Bandwidth> slowest;
  std::int64_t count = 0, gpus = 0;
};

void keep_least(std::optional<Bandwidth>& least, Bandwidth rate) {
  least = least ? std::min(*least, rate) : rate;
}

}  // namespace

void take_from_topology(const Topology& topology, std::span<const NodeId> gpus,
                        AnalyticOptions& analytic) {
  const Adjacency adjacency(topology);
  std::map<std::int32_t, Nics> servers;
  std::optional<Bandwidth> nvlink, pair;
  for (const NodeId gpu : gpus) {
    const std::int32_t number = topology.nodes[gpu.index()].server;
    Nics& server = servers[number];
    ++server.gpus;
    std::int64_t nvlinks_bps = 0, nics_bps = 0;
    for (const Neighbour& neighbour : adjacency.of(gpu)) {
      const Bandwidth rate = topology.class_of(LinkId(neighbour.port.index() / 2)).rate;
      const Node& other = topology.nodes[neighbour.node.index()];
      if (other.kind == NodeKind::kSwitch) {
        ++server.count;
        keep_least(server.slowest, rate);
        nics_bps += rate.bits_per_second();
      } else if (other.kind == NodeKind::kNvSwitch) {
        nvlinks_bps += rate.bits_per_second();
      } else if (other.server == number) {
        nvlinks_bps += rate.bits_per_second();
        keep_least(pair, rate);
      }
    }
    keep_least(nvlink, Bandwidth::bits_per_second(nvlinks_bps > 0 ? nvlinks_bps : nics_bps));
  }
  analytic.gpus_per_server = servers.begin()->second.gpus;
  for (const auto& [number, server] : servers) {
    analytic.gpus_per_server = std::max(analytic.gpus_per_server, server.gpus);
  }
  if (analytic.gpus_per_server > 1 && nvlink && *nvlink > Bandwidth()) {
    analytic.nvlink = *nvlink;
    analytic.pair = pair;
  }
  std::optional<Bandwidth> nic, of_gpu;
  std::optional<std::int64_t> nics;
  for (const auto& [number, server] : servers) {
    if (server.slowest) {
      keep_least(nic, *server.slowest);
      const Bandwidth rate = Bandwidth::bits_per_second(server.slowest->bits_per_second() *
                                                        server.count / server.gpus);
      keep_least(of_gpu, rate);
      nics = nics ? std::min(*nics, server.count) : server.count;
    }
  }
  if (nic) {
    analytic.nic = *nic;
    analytic.nics_per_server = *nics;
    analytic.nics_per_gpu = of_gpu->bytes_per_second() / nic->bytes_per_second();
  }
}

}  // namespace lockstep
