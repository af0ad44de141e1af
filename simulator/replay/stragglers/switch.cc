#include "simulator/replay/straggler_plan.h"

namespace lockstep {
namespace {

constexpr StragglerField kFields[] = {
    {"node", "", "a switch or NVSwitch, by its number"},
    {"share", "", "of its ports' bandwidth that is left, above 0"}};

void apply(const Straggler& spec, const StragglerContext& context, StragglerPlan& plan) {
  const Topology& topology = topology_of(spec, context);
  const double share = spec.number(1, 1e-6, 1e3);
  for (const std::int32_t node : spec.set(0, std::ssize(topology.nodes), "node")) {
    if (topology.nodes[static_cast<std::size_t>(node)].kind == NodeKind::kGpu) {
      throw spec.error(0, "node " + std::to_string(node) + " is a GPU; nic and gpu are for those");
    }
    for (const LinkId link : links_of(topology, NodeId(node))) {
      plan.scale_link(spec, link, share);
    }
  }
}

}  // namespace

extern const StragglerModel kSwitchStragglerModel;
const StragglerModel kSwitchStragglerModel{"switch", "a slow switch: all its links", kFields, apply,
                                           true};

}  // namespace lockstep
