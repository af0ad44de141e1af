#include "app/other_gpus.h"

#include <fmt/ranges.h>

#include "base/text.h"
#include "generator/compute/gpu_spec.h"
#include "simulator/collectives/nccl_fabric.h"
#include "simulator/replay/fabric_of.h"

namespace lockstep {

std::set<std::string> gpu_types_of(const Topology& topology, std::int64_t gpus) {
  std::set<std::string> types;
  std::int64_t seen = 0;
  for (const NodeId gpu : topology.gpus()) {
    if (seen++ == gpus) {
      break;
    }
    const Node& node = topology.nodes[gpu.index()];
    const std::string& type = topology.gpu_types[static_cast<std::size_t>(node.gpu_type)];
    const GpuSpec* known = find_gpu_spec(type);
    types.insert(known != nullptr ? std::string(known->name) : type);
  }
  return types;
}

void take_gpu_type(const Topology& topology, ExactJob& described) {
  const std::set<std::string> types = gpu_types_of(topology, described.job.gpus);
  if (described.gpu_type_given || types.size() != 1) {
    return;
  }
  if (const GpuSpec* gpu = find_gpu_spec(*types.begin()); gpu != nullptr) {
    described.job.gpu_type = gpu->name;
  }
}

std::string other_gpus(const Topology& topology, const Job& job) {
  const std::set<std::string> types = gpu_types_of(topology, job.gpus);
  const std::string taken(gpu_spec(job.gpu_type).name);
  return types == std::set{taken}
             ? std::string()
             : fmt::format("the topology's GPUs are {}, but all are taken for {} (--gpu-type)",
                           fmt::join(types, " and "), taken);
}

std::string other_nvlinks(const Topology& topology) {
  // The templates' 360 GB/s are 0.8 of an H100's; more than all its links no GPU has.
  constexpr double kMore = 1.001, kLess = 0.6;
  const Node& first = topology.nodes[topology.gpus().front().index()];
  const GpuSpec* spec = find_gpu_spec(topology.gpu_types[static_cast<std::size_t>(first.gpu_type)]);
  const double has =
      fabric_of(topology, gpus_of_first_server(topology)).nvlink.bytes_per_second() / 1e9;
  if (spec == nullptr || has == 0) {
    return {};
  }
  const double usual = spec->nvlink.bytes_per_second() / 1e9;
  if (has <= kMore * usual && has >= kLess * usual) {
    return {};
  }
  return fmt::format(
      "the topology gives a GPU {:.4g} GB/s of NVLink, {} has {:.4g} (in a template "
      "nvbw={:.4g}Gbps)",
      has, spec->name, usual, 8 * usual);
}

std::string taken_for_hopper(const Topology& topology) {
  const Node& first = topology.nodes[topology.gpus().front().index()];
  const std::string& type = topology.gpu_types[static_cast<std::size_t>(first.gpu_type)];
  const std::string series = gpu_series(type);
  if (arch_of(type) != GpuArch::kHopper || series.starts_with('h') || series.starts_with("gh")) {
    return {};
  }
  return fmt::format(
      "collectives are chosen as NCCL does on Hopper: of GPU type {} it is not known",
      printable(type));
}

}  // namespace lockstep
