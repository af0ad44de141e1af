#include <algorithm>

#include "simulator/replay/straggler_plan.h"

namespace lockstep {
namespace {

constexpr StragglerField kFields[] = {
    {"rails", "", "places of GPUs in their servers"},
    {"share", "", "of the bandwidth of their NICs that is left, above 0"}};

/// The rail of a GPU is its place among the GPUs of its server.
void apply(const Straggler& spec, const StragglerContext& context, StragglerPlan& plan) {
  const Topology& topology = topology_of(spec, context);
  const double share = spec.number(1, 1e-6, 1e3);
  const std::vector<std::int32_t> rails = spec.set(0, topology.gpus_per_server, "rail");
  std::vector<std::int32_t> seen(topology.nodes.size() + 1, 0);  // by server
  bool any = false;
  for (const NodeId gpu : topology.gpus()) {
    const std::int32_t rail = seen[static_cast<std::size_t>(topology.nodes[gpu.index()].server)]++;
    if (!std::ranges::binary_search(rails, rail)) {
      continue;
    }
    for (const LinkId nic : nics_of(topology, gpu)) {
      plan.scale_link(spec, nic, share);
      any = true;
    }
  }
  if (!any) {
    throw spec.error(0, "no GPU there has a link to a switch");
  }
}

}  // namespace

extern const StragglerModel kRailStragglerModel;
const StragglerModel kRailStragglerModel{"rail", "slow rails: the NICs at one place of all servers",
                                         kFields, apply};

}  // namespace lockstep
