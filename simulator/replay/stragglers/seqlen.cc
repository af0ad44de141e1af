#include <cstdint>
#include <utility>
#include <vector>

#include "simulator/replay/distribution.h"
#include "simulator/replay/straggler_plan.h"

namespace lockstep {
namespace {

constexpr StragglerField kFields[] = {
    {"share", "", "of a pass that is attention with even lengths, 0 to 1"},
    {"packed", "8", "sequences that a microbatch packs"},
    {"distribution", "lognormal", "normal, lognormal, uniform or exponential: of the lengths"},
    {"spread", "1", "deviation of the lengths, in parts of the mean; exponential: up to 1"}};

/// Sequences of unequal lengths are packed into microbatches of equal tokens; attention costs the
/// sum of their squares (StragglerAnalysis, OSDI'25, section 5.3). With lengths s_i of a draw,
/// scaled to the microbatch's tokens n, a pass takes
///
///     1 + share (sum s_i^2 / (n^2 / packed) - 1)
///
/// of its time with even lengths. A draw is for one data-parallel rank and microbatch: all stages,
/// tensor- and context-parallel ranks that work on it have the same.
void apply(const Straggler& spec, const StragglerContext& context, StragglerPlan& plan) {
  const double share = spec.number(0, 0, 1);
  const auto packed = static_cast<int>(spec.number(1, 1, 1e6));
  const Distribution lengths = [&] {
    try {
      return Distribution::of_sizes(spec.value(2), spec.number(3, 0, 10));
    } catch (Error& error) {
      throw std::move(error).field("--straggler " + spec.text());
    }
  }();
  if (spec.timed()) {
    throw spec.error("seqlen has no FROM: it is there all the time");
  }
  const std::uint64_t index = plan.index();
  std::vector<std::uint64_t> draws;  // of each rank: equal where the sequences are the same ones
  draws.reserve(static_cast<std::size_t>(context.ranks()));
  for (std::int32_t rank = 0; rank < context.ranks(); ++rank) {
    const CommFamily* replicas = context.family_of(GroupKind::kDp, rank);
    const std::int32_t dp = context.data_parallel_rank(rank);
    draws.push_back(replicas == nullptr ? static_cast<std::uint64_t>(dp)
                                        : context.draw_of(*replicas, dp));
  }
  const std::vector<std::uint64_t> alike = draws;
  const auto factor = [&plan, draws = std::move(draws), lengths, share, packed, index](
                          std::int32_t rank, std::int32_t, const ProgramOp& what) {
    if (what.type != OpType::kForward && what.type != OpType::kBackward) {
      return 1.0;
    }
    Rng rng = plan.rng(index, draws[static_cast<std::size_t>(rank)],
                       static_cast<std::uint64_t>(what.microbatch) + 1);
    double sum = 0, squares = 0;
    for (int i = 0; i < packed; ++i) {
      const double length = lengths.draw(rng);
      sum += length;
      squares += length * length;
    }
    return 1 + share * (squares * packed / (sum * sum) - 1);
  };
  plan.factor(factor, alike);
}

}  // namespace

extern const StragglerModel kSeqlenStragglerModel;
const StragglerModel kSeqlenStragglerModel{
    "seqlen", "packed sequences of unequal lengths: attention costs the sum of squares", kFields,
    apply};

}  // namespace lockstep
