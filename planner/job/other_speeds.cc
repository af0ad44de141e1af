#include "planner/job/other_speeds.h"

#include <map>
#include <utility>
#include <variant>

namespace lockstep {

Topology with_speeds(Topology topology, const Speeds& speeds) {
  const auto kind = [&](NodeId node) { return topology.nodes[node.index()].kind; };
  std::map<std::pair<std::int32_t, double>, std::int32_t> classes;  // by old one and factor
  std::vector<LinkClass> changed;
  for (Link& link : topology.links) {
    double rate = 1;
    if (kind(link.a) == NodeKind::kGpu || kind(link.b) == NodeKind::kGpu) {
      const bool switched = kind(link.a) == NodeKind::kSwitch || kind(link.b) == NodeKind::kSwitch;
      rate = switched ? speeds.nic : speeds.nvlink;
    }
    const auto [known, is_new] =
        classes.try_emplace({link.link_class, rate}, static_cast<std::int32_t>(changed.size()));
    if (is_new) {
      LinkClass other = topology.link_classes[static_cast<std::size_t>(link.link_class)];
      other.set_rate(Bandwidth::bytes_per_second(other.rate.bytes_per_second() * rate));
      other.set_delay(Time::seconds(other.delay.seconds() * speeds.latency));
      changed.push_back(std::move(other));
    }
    link.link_class = known->second;
  }
  topology.link_classes = std::move(changed);
  return topology;
}

Workload with_gpu_speed(Workload workload, double factor) {
  for (WorkloadJob& job : workload.jobs) {
    for (OpProgram& program : std::get<OpTable>(job.work).programs) {
      for (Op& op : program.ops) {
        op.compute = Time::seconds(op.compute.seconds() / factor);
      }
    }
  }
  return workload;
}

}  // namespace lockstep
