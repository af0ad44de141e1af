#include "simulator/replay/straggler_plan.h"

namespace lockstep {
namespace {

constexpr StragglerField kFields[] = {
    {"stages", "", "pipeline stages"},
    {"factor", "", "their computations take so many times as long"}};

void apply(const Straggler& spec, const StragglerContext& context, StragglerPlan& plan) {
  const double factor = spec.number(1, 0.01, 1e6);
  for (const std::int32_t stage : spec.set(0, context.size(GroupKind::kPp), "stage")) {
    for (std::int32_t rank = 0; rank < context.ranks(); ++rank) {
      if (context.place(GroupKind::kPp, rank) == stage) {
        plan.slow(rank, {factor, spec.from(), spec.until()});
      }
    }
  }
}

}  // namespace

extern const StragglerModel kStageStragglerModel;
const StragglerModel kStageStragglerModel{"stage", "slow pipeline stages: all their ranks", kFields,
                                          apply};

}  // namespace lockstep
