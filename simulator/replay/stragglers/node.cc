#include <algorithm>

#include "simulator/replay/straggler_plan.h"

namespace lockstep {
namespace {

constexpr StragglerField kFields[] = {
    {"servers", "", "numbers of servers"},
    {"factor", "", "their computations take so many times as long"}};

void apply(const Straggler& spec, const StragglerContext& context, StragglerPlan& plan) {
  const double factor = spec.number(1, 0.01, 1e6);
  const std::int32_t servers = *std::ranges::max_element(context.server_of_rank) + 1;
  for (const std::int32_t server : spec.set(0, servers, "server")) {
    for (std::int32_t rank = 0; rank < context.ranks(); ++rank) {
      if (context.server_of_rank[static_cast<std::size_t>(rank)] == server) {
        plan.slow(rank, {factor, spec.from(), spec.until()});
      }
    }
  }
}

}  // namespace

extern const StragglerModel kNodeStragglerModel;
const StragglerModel kNodeStragglerModel{"node", "slow servers: all their GPUs", kFields, apply};

}  // namespace lockstep
