#include "planner/metis/space.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "planner/metis/memory.h"

namespace lockstep::metis {
namespace {

bool power_of_two(int count) { return std::has_single_bit(static_cast<unsigned>(count)); }

}  // namespace

std::string left_out_because(const Problem& problem, const std::vector<Rank>& ranks, int first,
                             Strategy strategy, std::int64_t batches) {
  if (!power_of_two(strategy.dp) || !power_of_two(strategy.tp)) {
    return fmt::format("has dp {} and tp {}, not powers of two", strategy.dp, strategy.tp);
  }
  if (strategy.tp > problem.max_tp) {
    return fmt::format("has tp {}, above --max-tp {}", strategy.tp, problem.max_tp);
  }
  const std::int64_t batch = problem.global_batch / batches, each = batch / strategy.dp;
  if (each < 1 || each > problem.max_batch) {
    return fmt::format("has {} samples a rank, not 1 to --max-batch {}", each, problem.max_batch);
  }
  if (alike(problem, ranks, first, strategy.dp * strategy.tp)) {
    return each * strategy.dp == batch
               ? ""
               : fmt::format("leaves out {} of {} samples", batch - each * strategy.dp, batch);
  }
  for (const std::int64_t share :
       balance(problem, leaders_of(problem, ranks, first, strategy), strategy.tp, batch, nullptr)) {
    const auto piece = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(share)));
    if (piece > problem.max_batch) {
      return fmt::format("has {} samples at once in a group, above --max-batch {}", piece,
                         problem.max_batch);
    }
  }
  return "";
}

Soundness soundness(const Problem& problem, const Plan& plan) {
  Soundness found;
  const auto warn = [&](std::string text) { found.warnings.push_back(std::move(text)); };
  const std::vector<Rank> ranks = ranks_of(problem, plan.node_sequence);
  if (plan.partition.front() != 0 || plan.partition.back() != problem.layers) {
    warn(fmt::format("the plan covers the layers {} to {} of {}", plan.partition.front(),
                     plan.partition.back(), problem.layers));
  }
  if (problem.global_batch % plan.batches != 0) {
    warn(fmt::format("{} microbatches leave out {} of {} samples", plan.batches,
                     problem.global_batch % plan.batches, problem.global_batch));
  }
  int first = 0;
  for (std::size_t s = 0; s < plan.strategies.size(); ++s) {
    const int gpus = plan.device_groups[s];
    const std::int64_t begin = plan.partition[s], end = plan.partition[s + 1];
    if (begin == end) {
      warn(fmt::format("stage {} has no layers", s));
    }
    const std::string why =
        left_out_because(problem, ranks, first, plan.strategies[s], plan.batches);
    if (!why.empty()) {
      warn(fmt::format("stage {} {}", s, why));
    }
    const StageMemory memory(problem, ranks, first, gpus, plan.strategies[s], plan.batches);
    if (!memory.known()) {
      warn(fmt::format("stage {}: a profile that Metis estimates its memory by is missing", s));
      found.fits = false;
    } else if (memory.demand_mb(begin, end) > memory.room_mb()) {
      warn(fmt::format("stage {} needs {:.1f} MB by Metis's estimate, its GPUs have {:.1f}", s,
                       memory.demand_mb(begin, end), memory.room_mb()));
      found.fits = false;
    }
    first += gpus;
  }
  if (first != problem.gpus()) {
    warn(fmt::format("the plan uses {} GPUs; the cluster has {}", first, problem.gpus()));
  }
  return found;
}

}  // namespace lockstep::metis
