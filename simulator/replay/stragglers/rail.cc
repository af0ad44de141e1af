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
  std::vector<std::int32_t> seen(topology.nodes.size() + 1, 0);  // by server
  std::vector<std::int32_t> rail_of;                             // each GPU
  const std::vector<NodeId> gpus = topology.gpus();
  rail_of.reserve(gpus.size());
  for (const NodeId gpu : gpus) {
    rail_of.push_back(seen[static_cast<std::size_t>(topology.nodes[gpu.index()].server)]++);
  }
  const std::vector<std::int32_t> rails = spec.set(0, *std::ranges::max_element(seen), "rail");
  bool any = false;
  for (std::size_t i = 0; i < rail_of.size(); ++i) {
    const NodeId gpu = gpus[i];
    if (!std::ranges::binary_search(rails, rail_of[i])) {
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
