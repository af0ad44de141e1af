#include "simulator/replay/straggler_plan.h"

namespace lockstep {
namespace {

constexpr StragglerField kFields[] = {{"nodes", "", "the two nodes that it joins, such as 12-40"},
                                      {"share", "", "of its bandwidth that is left, above 0"}};

void apply(const Straggler& spec, const StragglerContext& context, StragglerPlan& plan) {
  const auto [a, b] = spec.pair(0);
  const double share = spec.number(1, 1e-6, 1e3);
  for (const LinkId link : links_between(spec, 0, topology_of(spec, context), a, b)) {
    plan.scale_link(spec, link, share);
  }
}

}  // namespace

extern const StragglerModel kLinkStragglerModel;
const StragglerModel kLinkStragglerModel{"link", "a slow cable: both directions of a link", kFields,
                                         apply, true};

}  // namespace lockstep
