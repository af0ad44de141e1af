#include "simulator/replay/straggler_plan.h"

namespace lockstep {
namespace {

constexpr StragglerField kFields[] = {
    {"gpus", "", "ranks"},
    {"factor", "", "while throttled, computations take so many times as long"},
    {"period", "1s", "from one throttling to the next"},
    {"duty", "0.3", "share of the period that is throttled"}};

/// A GPU at its temperature limit goes back and forth between two clocks. When in the period it is
/// throttled first is drawn for each rank.
void apply(const Straggler& spec, const StragglerContext& context, StragglerPlan& plan) {
  const double factor = spec.number(1, 0.01, 1e6), duty = spec.number(3, 0, 1);
  const Time period = spec.time(2);
  if (period < Time::us(1)) {
    throw spec.error(2, "is below 1us");
  }
  for (const std::int32_t rank : spec.set(0, context.ranks(), "rank")) {
    Rng rng = plan.rng(plan.index(), static_cast<std::uint64_t>(rank));
    const Time phase = Time::seconds(period.seconds() * rng.uniform());
    // The window begins a period early, so that a throttling under way at the start is seen.
    plan.slow(rank, {factor, spec.from(), spec.until(), period,
                     Time::seconds(period.seconds() * duty), phase - period});
  }
}

}  // namespace

extern const StragglerModel kThermalStragglerModel;
const StragglerModel kThermalStragglerModel{"thermal", "GPUs that throttle for a part of the time",
                                            kFields, apply};

}  // namespace lockstep
