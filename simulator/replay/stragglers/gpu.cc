#include "simulator/replay/straggler_plan.h"

namespace lockstep {
namespace {

constexpr StragglerField kFields[] = {
    {"gpus", "", "ranks"}, {"factor", "", "its computations take so many times as long"}};

void apply(const Straggler& spec, const StragglerContext& context, StragglerPlan& plan) {
  const double factor = spec.number(1, 0.01, 1e6);
  for (const std::int32_t rank : spec.set(0, context.ranks(), "rank")) {
    plan.slow(rank, {factor, spec.from(), spec.until()});
  }
}

}  // namespace

extern const StragglerModel kGpuStragglerModel;
const StragglerModel kGpuStragglerModel{"gpu", "slow GPUs", kFields, apply};

}  // namespace lockstep
