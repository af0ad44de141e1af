#include "simulator/replay/straggler_plan.h"

namespace lockstep {
namespace {

constexpr StragglerField kFields[] = {{"gpus", "", "ranks whose NICs are slow"},
                                      {"share", "", "of their bandwidth that is left, above 0"}};

/// A NIC is a GPU's link to a switch outside its server.
void apply(const Straggler& spec, const StragglerContext& context, StragglerPlan& plan) {
  const Topology& topology = topology_of(spec, context);
  const double share = spec.number(1, 1e-6, 1e3);
  for (const std::int32_t rank : spec.set(0, context.ranks(), "rank")) {
    const NodeId gpu = context.node_of_rank[static_cast<std::size_t>(rank)];
    for (const LinkId link : links_of(topology, gpu)) {
      const Link& ends = topology.links[link.index()];
      const NodeId other = ends.a == gpu ? ends.b : ends.a;
      if (topology.nodes[other.index()].kind == NodeKind::kSwitch) {
        plan.scale_link(spec, link, share);
      }
    }
  }
}

}  // namespace

extern const StragglerModel kNicStragglerModel;
const StragglerModel kNicStragglerModel{"nic", "slow NICs", kFields, apply};

}  // namespace lockstep
