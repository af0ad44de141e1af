#include <fmt/format.h>

#include "simulator/replay/straggler_plan.h"

namespace lockstep {
namespace {

constexpr StragglerField kFields[] = {
    {"nodes", "", "a link by the two nodes it joins, such as 12-40, or a switch by its number"}};

/// So long after it has gone down a run that still waits is given up.
constexpr Time kPatience = Time::ns(30'000'000'000);

/// What is down carries nothing; transfers on it wait until it is up again, and routes stay as they
/// are. What is down for good ends the run, if it needs it, with an error that names it.
void apply(const Straggler& spec, const StragglerContext& context, StragglerPlan& plan) {
  const Topology& topology = topology_of(spec, context);
  std::vector<LinkId> links;
  if (spec.value(0).find('-') != std::string::npos) {
    const auto [a, b] = spec.pair(0);
    links = links_between(spec, 0, topology, a, b);
  } else {
    for (const std::int32_t node : spec.set(0, std::ssize(topology.nodes), "node")) {
      const std::vector<LinkId> of_node = links_of(topology, NodeId(node));
      links.insert(links.end(), of_node.begin(), of_node.end());
    }
  }
  for (const LinkId link : links) {
    plan.scale_link(spec, link, 0);
  }
  if (spec.until() == Time::max()) {
    plan.hang(spec.from() + kPatience,
              spec.error(fmt::format("the step hangs: {} has been down since {}, and transfers "
                                     "wait for it",
                                     spec.value(0), to_text(spec.from())))
                  .hint("give an end (@10ms-20ms), or leave it out of the topology to see the "
                        "step with other routes"));
  }
}

}  // namespace

extern const StragglerModel kDownStragglerModel;
const StragglerModel kDownStragglerModel{"down", "a link or switch that goes down", kFields, apply};

}  // namespace lockstep
