#include "base/file.h"
#include "simulator/replay/distribution.h"
#include "simulator/replay/straggler_plan.h"

namespace lockstep {
namespace {

constexpr StragglerField kFields[] = {
    {"gpus", "", "ranks"},
    {"distribution", "",
     "normal, lognormal, uniform, exponential, or a histogram FILE.csv of value,weight"},
    {"spread", "0.05", "of the named ones: deviation, or mean excess, in parts of the duration"},
    {"per", "rank", "a draw for each rank (and step), microbatch or op"}};

void apply(const Straggler& spec, const StragglerContext& context, StragglerPlan& plan) {
  static constexpr std::string_view kPer[] = {"rank", "microbatch", "op"};
  const std::size_t per = spec.word(3, kPer);
  const Distribution distribution = [&] {
    try {
      return spec.value(1).ends_with(".csv")
                 ? Distribution::histogram(FileText(spec.value(1)).view(), spec.value(1))
                 : Distribution::named(spec.value(1), spec.number(2, 0, 10));
    } catch (Error& error) {
      throw std::move(error).field("--straggler " + spec.text());
    }
  }();
  // 0: not chosen; else a number of its own, as each draws for itself.
  std::vector<std::uint64_t> chosen(static_cast<std::size_t>(context.ranks()), 0);
  for (const std::int32_t rank : spec.set(0, context.ranks(), "rank")) {
    chosen[static_cast<std::size_t>(rank)] = static_cast<std::uint64_t>(rank) + 1;
  }
  const std::uint64_t index = plan.index();
  if (spec.timed()) {
    throw spec.error("jitter has no FROM: it is there all the time");
  }
  plan.factor(
      [&plan, distribution, chosen, per, index](std::int32_t rank, std::int32_t op,
                                                const ProgramOp& what) {
        if (chosen[static_cast<std::size_t>(rank)] == 0) {
          return 1.0;
        }
        const std::int64_t part = per == 0 ? 0 : per == 1 ? what.microbatch + 1 : op + 1;
        Rng rng =
            plan.rng(index, static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(part));
        return distribution.draw(rng);
      },
      chosen);
}

}  // namespace

extern const StragglerModel kJitterStragglerModel;
const StragglerModel kJitterStragglerModel{
    "jitter", "computations that vary by a distribution, drawn anew in each step", kFields, apply,
    true};

}  // namespace lockstep
