#include "simulator/replay/straggler_plan.h"

namespace lockstep {
namespace {

constexpr StragglerField kFields[] = {
    {"gpus", "", "ranks"},
    {"factor", "", "while throttled, computations take so many times as long"},
    {"period", "1s", "from one throttling to the next"},
    {"duty", "0.3", "share of the period that is throttled"}};

/// Where in its period a step begins, as a part of it, which begins with the throttled part. A run
/// is one step after the other, of equal work. Where the k-th begins in the work of a period, k W
/// modulo that, is even over many steps: as likely in each part of the period as work is done in
/// it, so by a density proportional to the speed, 1 / factor while throttled and 1 after that. (In
/// wall-clock time throttled steps are longer, but not more.) With an even draw of the work the
/// mean step takes 1 / (duty / factor + 1 - duty) of its work, however long it is.
double begin_of(double factor, double duty, double draw) {
  const double throttled = duty / factor;
  const double work = draw * (throttled + 1 - duty);
  return work < throttled ? work * factor : duty + (work - throttled);
}

/// A GPU at its temperature limit goes back and forth between two clocks. When in the period it is
/// throttled first is drawn for each rank, as if no rank waited for another.
void apply(const Straggler& spec, const StragglerContext& context, StragglerPlan& plan) {
  const double factor = spec.number(1, 0.01, 1e6), duty = spec.number(3, 0, 1);
  const Time period = spec.time(2);
  if (period < Time::us(1)) {
    throw spec.error(2, "is below 1us");
  }
  for (const std::int32_t rank : spec.set(0, context.ranks(), "rank")) {
    Rng rng = plan.rng(plan.index(), static_cast<std::uint64_t>(rank));
    const double begin = begin_of(factor, duty, rng.uniform());
    // The first period began before, so that a throttling under way at the start is seen.
    plan.slow(rank,
              {factor, spec.from(), spec.until(), period, Time::seconds(period.seconds() * duty),
               Time() - Time::seconds(period.seconds() * begin)});
  }
}

}  // namespace

extern const StragglerModel kThermalStragglerModel;
const StragglerModel kThermalStragglerModel{"thermal", "GPUs that throttle for a part of the time",
                                            kFields, apply};

}  // namespace lockstep
