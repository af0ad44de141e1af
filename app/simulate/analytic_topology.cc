#include "app/simulate/analytic_topology.h"

namespace lockstep {

void take_from_topology(const Topology& topology, AnalyticOptions& analytic) {
  analytic.gpus_per_server = topology.gpus_per_server;
  const Adjacency adjacency(topology);
  const NodeId first = topology.gpus().front();
  const std::int32_t server = topology.nodes[first.index()].server;
  std::int64_t nics = 0;
  for (const NodeId gpu : topology.gpus()) {
    if (topology.nodes[gpu.index()].server != server) {
      continue;
    }
    for (const Neighbour& neighbour : adjacency.of(gpu)) {
      const Bandwidth rate = topology.class_of(LinkId(neighbour.port.index() / 2)).rate;
      const NodeKind kind = topology.nodes[neighbour.node.index()].kind;
      if (kind == NodeKind::kSwitch) {
        ++nics;
        analytic.nic = rate;
      } else if (kind == NodeKind::kNvSwitch) {
        analytic.nvlink = rate;
      }
    }
  }
  if (nics > 0) {
    analytic.nics_per_server = nics;
  }
}

}  // namespace lockstep
