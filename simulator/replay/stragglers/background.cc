#include <cmath>

#include "simulator/replay/straggler_plan.h"
#include "topologies/routing.h"

namespace lockstep {
namespace {

constexpr StragglerField kFields[] = {{"nodes", "", "from which GPU to which, such as 0-12"},
                                      {"rate", "", "of the traffic, such as 50Gbps"}};

/// Traffic of others that does not give way: on each port of its route it takes its rate from what
/// is left for the job.
void apply(const Straggler& spec, const StragglerContext& context, StragglerPlan& plan) {
  const Topology& topology = topology_of(spec, context);
  const auto [a, b] = spec.pair(0);
  const Bandwidth rate = spec.bandwidth(1);
  for (const std::int64_t node : {a, b}) {
    if (node >= std::ssize(topology.nodes) ||
        topology.nodes[static_cast<std::size_t>(node)].kind != NodeKind::kGpu) {
      throw spec.error(0, "node " + std::to_string(node) + " is no GPU");
    }
  }
  if (a == b) {
    throw spec.error(0, "the two are the same");
  }
  Router router(topology);
  Route route;
  router.route({NodeId(static_cast<std::int32_t>(a)), NodeId(static_cast<std::int32_t>(b))}, route);
  for (const Hop& hop : route.hops) {
    const double part = hop.share * static_cast<double>(rate.bits_per_second());
    plan.scale_port(spec, hop.port, 1, Bandwidth::bits_per_second(std::llround(part)));
  }
}

}  // namespace

extern const StragglerModel kBackgroundStragglerModel;
const StragglerModel kBackgroundStragglerModel{
    "background", "traffic of others between two GPUs, at a constant rate", kFields, apply, true};

}  // namespace lockstep
