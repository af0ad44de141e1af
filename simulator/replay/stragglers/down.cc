#include <set>

#include "simulator/replay/straggler_plan.h"

namespace lockstep {
namespace {

constexpr StragglerField kFields[] = {
    {"nodes", "", "a link by the two nodes it joins, such as 12-40, or switches by their numbers"},
    {"reroute", "1ms",
     "how long until connections take another way, where there is one, and take the old one again; "
     "or never"}};

/// What is down carries nothing. Connections whose way crosses it wait, until they are rerouted or
/// it is up again; those that can do neither end the run with an error that names them.
void apply(const Straggler& spec, const StragglerContext& context, StragglerPlan& plan) {
  const Topology& topology = topology_of(spec, context);
  std::set<LinkId> links;
  if (spec.value(0).find('-') != std::string::npos) {
    const auto [a, b] = spec.pair(0);
    const std::vector<LinkId> between = links_between(spec, 0, topology, a, b);
    links.insert(between.begin(), between.end());
  } else {
    for (const std::int32_t node : spec.set(0, std::ssize(topology.nodes), "node")) {
      const std::vector<LinkId> of_node = links_of(topology, NodeId(node));
      links.insert(of_node.begin(), of_node.end());
    }
  }
  const Time rerouting = spec.value(1) == "never" ? Time::max() : spec.time(1);
  plan.fail(spec, {links.begin(), links.end()}, rerouting);
}

}  // namespace

extern const StragglerModel kDownStragglerModel;
const StragglerModel kDownStragglerModel{.name = "down",
                                         .summary = "a link or switch that fails",
                                         .fields = kFields,
                                         .apply = apply,
                                         .keeps_rings = true,
                                         .fails_links = true};

}  // namespace lockstep
