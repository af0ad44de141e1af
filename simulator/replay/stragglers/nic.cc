#include <string>
#include <vector>

#include "simulator/replay/straggler_plan.h"

namespace lockstep {
namespace {

constexpr StragglerField kFields[] = {{"gpus", "", "ranks whose NICs are slow"},
                                      {"share", "", "of their bandwidth that is left, above 0"}};

void apply(const Straggler& spec, const StragglerContext& context, StragglerPlan& plan) {
  const Topology& topology = topology_of(spec, context);
  const double share = spec.number(1, 1e-6, 1e3);
  for (const std::int32_t rank : spec.set(0, context.ranks(), "rank")) {
    const std::vector<LinkId> nics =
        nics_of(topology, context.node_of_rank[static_cast<std::size_t>(rank)]);
    if (nics.empty()) {
      throw spec.error(0, "rank " + std::to_string(rank) + " has no link to a switch");
    }
    for (const LinkId nic : nics) {
      plan.scale_link(spec, nic, share);
    }
  }
}

}  // namespace

extern const StragglerModel kNicStragglerModel;
const StragglerModel kNicStragglerModel{"nic", "slow NICs", kFields, apply};

}  // namespace lockstep
