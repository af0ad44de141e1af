#include "app/other_gpus.h"

#include <fmt/ranges.h>

namespace lockstep {

std::set<std::string> gpu_types_of(const Topology& topology, std::int64_t gpus) {
  std::set<std::string> types;
  std::int64_t seen = 0;
  for (const NodeId gpu : topology.gpus()) {
    if (seen++ == gpus) {
      break;
    }
    const Node& node = topology.nodes[gpu.index()];
    types.insert(topology.gpu_types[static_cast<std::size_t>(node.gpu_type)]);
  }
  return types;
}

std::string other_gpus(const Topology& topology, const Job& job) {
  const std::set<std::string> types = gpu_types_of(topology, job.gpus);
  return types == std::set{job.gpu_type}
             ? std::string()
             : fmt::format("the topology's GPUs are {}, but all are taken for {} (--gpu-type)",
                           fmt::join(types, " and "), job.gpu_type);
}

}  // namespace lockstep
