#include "simulator/replay/straggler_plan.h"

namespace lockstep {
namespace {

constexpr StragglerField kFields[] = {
    {"gpus", "", "ranks"},
    {"pause", "", "how long a rank stands still"},
    {"every", "", "from one pause to the next"},
    {"planned", "no", "yes: all ranks at the same time; no: each at a time of its own"}};

/// Pauses of the host's garbage collector, during which no kernel is launched (StragglerAnalysis,
/// OSDI'25, section 5.4: unplanned ones hit every rank at another time; planned ones cost once).
///
/// A step begins where the one before ended, so never within a pause, in which no step gets on: as
/// likely at each moment from the end of a pause to the next one. The mean step then takes
/// every / (every - pause) of its work, however long it is (as in thermal.cc, at a speed of 0).
void apply(const Straggler& spec, const StragglerContext& context, StragglerPlan& plan) {
  static constexpr std::string_view kWords[] = {"no", "yes"};
  const Time pause = spec.time(1), every = spec.time(2);
  if (every <= pause) {
    throw spec.error(2, "is not longer than PAUSE");
  }
  const bool planned = spec.word(3, kWords) == 1;
  for (const std::int32_t rank : spec.set(0, context.ranks(), "rank")) {
    Rng rng = plan.rng(plan.index(), planned ? 0 : static_cast<std::uint64_t>(rank));
    plan.slow(rank, {0, spec.from(), spec.until(), every, pause,
                     Time() - pause - Time::seconds((every - pause).seconds() * rng.uniform())});
  }
}

}  // namespace

extern const StragglerModel kGcStragglerModel;
const StragglerModel kGcStragglerModel{"gc", "garbage-collection pauses", kFields, apply, true};

}  // namespace lockstep
