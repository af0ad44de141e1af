#include <numeric>

#include "simulator/replay/distribution.h"
#include "simulator/replay/straggler_plan.h"

namespace lockstep {
namespace {

constexpr StragglerField kFields[] = {
    {"share", "", "of a pass that is experts' products with even load, 0 to 1"},
    {"spread", "0.3",
     "deviation of the load of an expert-parallel rank, in parts of the mean; exponential: up to "
     "1"},
    {"distribution", "lognormal", "normal, lognormal, uniform or exponential: of the loads"}};

/// The router gives some experts more tokens than others. Each expert-parallel rank draws a load
/// for each microbatch; loads of a group are scaled to a mean of 1. A pass takes
/// 1 + share (load - 1) of its time, and all-to-alls carry so much to each rank and back from it.
void apply(const Straggler& spec, const StragglerContext& context, StragglerPlan& plan) {
  const double share = spec.number(0, 0, 1);
  const Distribution distribution = [&] {
    try {
      return Distribution::of_sizes(spec.value(2), spec.number(1, 0, 10));
    } catch (Error& error) {
      throw std::move(error).field("--straggler " + spec.text());
    }
  }();
  if (context.size(GroupKind::kEp) < 2) {
    throw spec.error("the job has no expert-parallel ranks");
  }
  if (spec.timed()) {
    throw spec.error("experts has no FROM: it is there all the time");
  }
  const std::uint64_t index = plan.index();
  const auto loads = [&plan, &context, distribution, index](
                         const CommFamily& family, std::int32_t group, std::int32_t microbatch) {
    const auto& members = family.groups()[static_cast<std::size_t>(group)];
    Rng rng =
        plan.rng(index, context.draw_of(family, group), static_cast<std::uint64_t>(microbatch) + 1);
    std::vector<double> drawn;
    double sum = 0;
    for (std::size_t place = 0; place < members.size(); ++place) {
      sum += drawn.emplace_back(distribution.draw(rng));
    }
    for (double& load : drawn) {
      load *= static_cast<double>(members.size()) / sum;
    }
    return drawn;
  };
  std::vector<std::uint64_t> alike(static_cast<std::size_t>(context.ranks()));
  std::iota(alike.begin(), alike.end(), 0);
  plan.loads(loads);
  plan.factor(
      [&context, loads, share](std::int32_t rank, std::int32_t, const ProgramOp& what) {
        const CommFamily* family = context.family_of(GroupKind::kEp, rank);
        if ((what.type != OpType::kForward && what.type != OpType::kBackward) ||
            family == nullptr) {
          return 1.0;
        }
        const auto place = static_cast<std::size_t>(family->place_of(rank));
        return 1 + share * (loads(*family, family->group_of(rank), what.microbatch)[place] - 1);
      },
      alike);
}

}  // namespace

extern const StragglerModel kExpertsStragglerModel;
const StragglerModel kExpertsStragglerModel{"experts", "experts with unequal loads", kFields,
                                            apply};

}  // namespace lockstep
