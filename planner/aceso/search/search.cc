#include "planner/aceso/search/search.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/parallel.h"

namespace lockstep::aceso {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();
constexpr std::int64_t kManyOps = 1200, kMostOps = 4000;
constexpr std::int64_t kPassWork = 2'500'000;  ///< of a pass after the first

/// One microbatch's share of the search.
struct Branch {
  std::int64_t microbatch = 0;
  std::unique_ptr<PipelineSearch> pipelines;
  double bottleneck_us = 0;
  double bound_us = 0;
};

std::vector<Branch> branches(const Problem& problem, const SearchOptions& options,
                             SearchResult& result) {
  std::vector<std::unique_ptr<PipelineSearch>> made(problem.microbatches.size());
  std::vector<double> bottleneck_us(made.size(), kFar);
  for_each_in_parallel(made.size(), options.threads, [&](std::size_t i) {
    if (problem.global_batch % problem.microbatches[i] == 0) {
      made[i] = std::make_unique<PipelineSearch>(problem, problem.microbatches[i], options.memo,
                                                 options.stop);
      if (!made[i]->empty()) {
        bottleneck_us[i] = made[i]->least_bottleneck_us();
      }
    }
  });
  std::vector<Branch> all;
  for (std::size_t i = 0; i < made.size(); ++i) {
    const std::int64_t microbatch = problem.microbatches[i];
    if (problem.global_batch % microbatch != 0) {
      result.removed.push_back(no_multiple(problem, microbatch));
      continue;
    }
    Branch branch{.microbatch = microbatch, .pipelines = std::move(made[i])};
    if (branch.pipelines->empty()) {
      result.removed.push_back(
          fmt::format("microbatch {}: no profile for any number of GPUs", microbatch));
      continue;
    }
    branch.bottleneck_us = bottleneck_us[i];
    if (branch.bottleneck_us == kFar) {
      result.removed.push_back(fmt::format("microbatch {}: no plan fits {:.0f} MB on {} GPUs",
                                           microbatch, problem.cluster.memory_limit_mb,
                                           problem.cluster.gpus()));
      continue;
    }
    branch.bound_us = branch.pipelines->objective(
        branch.bottleneck_us, std::max(branch.bottleneck_us, branch.pipelines->least_sum_us()));
    all.push_back(std::move(branch));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Branch& a, const Branch& b) { return a.bound_us < b.bound_us; });
  return all;
}

/// Keeps the best plan of each number of stages and, where several are wanted, microbatch.
void keep(SearchResult& result, const Problem& problem, std::size_t most, Plan plan) {
  PlanPrice price =
      price_plan(plan, *problem.database, *problem.model, problem.cluster, problem.flavour);
  for (RankedPlan& ranked : result.plans) {
    if (ranked.plan.stages.size() == plan.stages.size() &&
        (most == 1 || ranked.plan.microbatch == plan.microbatch)) {
      if (price.time_ms < ranked.price.time_ms) {
        ranked = {std::move(plan), std::move(price)};
      }
      return;
    }
  }
  result.plans.push_back({std::move(plan), std::move(price)});
}

/// ERRORS: more stages than there may be would be needed for all GPUs to have one.
void check_stages(const Problem& problem) {
  const int server = problem.cluster.gpus_per_node;
  const int each = server / 8 + std::popcount(static_cast<unsigned>(server % 8));
  const std::int64_t need = std::int64_t{problem.cluster.nodes} * each;
  if (need > problem.max_stages) {
    throw Error(fmt::format("{} GPUs need {} stages of 1, 2, 4 or 8 within a server",
                            problem.cluster.gpus(), need))
        .field("--max-stages")
        .expected(fmt::format("at least {}, or fewer --nodes", need));
  }
}

/// What a search knows so far.
struct State {
  const Problem& problem;
  SearchResult& result;
  std::size_t most = 1;
  double best_us = kFar;   ///< what a plan must beat to be among those wanted
  double bound_us = kFar;  ///< of what was not proven worse than that
  /// Of each number of stages and microbatch.
  std::map<std::pair<int, std::int64_t>, double> found_us = {};

  double to_beat_us(int stages, std::int64_t microbatch) const {
    const auto own = found_us.find({stages, microbatch});
    return own == found_us.end() ? best_us : std::min(best_us, own->second);
  }
  void found(int stages, std::int64_t microbatch, double us) {
    found_us[{stages, microbatch}] = us;
    std::vector<double> all;
    for (const auto& [key, value] : found_us) {
      all.push_back(value);
    }
    std::ranges::sort(all);
    best_us = all.size() < most ? kFar : all[most - 1];
  }
};

/// Looks for pipelines of one microbatch that beat the best, with ever slower stages allowed, until
/// slower ones cannot beat it.
void explore(State& state, Branch& branch, double first_slack, int most_stages) {
  PipelineSearch& pipelines = *branch.pipelines;
  // (m - 1) slowest + sum beats the best, where the sum is neither less than the least nor than the
  // slowest itself.
  const auto count = static_cast<double>(pipelines.microbatches());
  const auto slowest_useful = [&] {
    double slowest = std::min(state.best_us / count, pipelines.most_stage_us());
    if (count > 1) {
      slowest = std::min(slowest, (state.best_us - pipelines.least_sum_us()) / (count - 1));
    }
    return slowest;
  };
  for (double slack = first_slack;; slack *= 2) {
    const double time = std::min(branch.bottleneck_us * (1 + slack), slowest_useful());
    bool proven = true;
    for (int stages = 1; stages <= most_stages; ++stages) {
      if (!pipelines.may_reach(stages, time)) {
        continue;
      }
      if (pipelines.exhausted()) {
        state.bound_us = std::min(state.bound_us, branch.bound_us);
        return;
      }
      PipelineSearch::Found found =
          pipelines.best(stages, time, state.to_beat_us(stages, branch.microbatch));
      if (found.any) {
        state.found(stages, branch.microbatch, found.objective_us);
        keep(state.result, state.problem, state.most, std::move(found.plan));
      }
      if (!found.exact) {
        proven = false;
        state.bound_us = std::min(state.bound_us, std::max(branch.bound_us, found.bound_us));
      }
    }
    if (time >= slowest_useful()) {
      return;
    }
    if (!proven && pipelines.exhausted()) {
      state.bound_us = std::min(state.bound_us, branch.bound_us);
      return;
    }
  }
}

}  // namespace

std::string no_multiple(const Problem& problem, std::int64_t microbatch) {
  return fmt::format("microbatch {}: the global batch of {} is no multiple of it", microbatch,
                     problem.global_batch);
}

SearchResult search(const Problem& problem, const SearchOptions& options) {
  check_stages(problem);
  SearchResult result;
  State state{problem, result, options.most};
  const int most = std::min({problem.max_stages, problem.cluster.gpus(),
                             static_cast<int>(std::min<std::int64_t>(problem.ops(), 1 << 20))});
  // Until there is a plan, nothing ends the search.
  SearchOptions ours = options;
  ours.stop = [&] { return !result.plans.empty() && options.stop && options.stop(); };
  std::vector<Branch> all = branches(problem, ours, result);
  // First with cuts between layers alone and few labels: a good plan soon.
  struct Pass {
    std::int64_t layers_apart;  ///< 0: cuts anywhere
    std::int64_t labels;
    double slack;
    bool afresh = false;  ///< labels that the pass before has dropped are no proof
  };
  std::vector<Pass> passes = {{1, 30, 0.06}, {0, 2300, 0.004, true}};
  if (problem.ops() > kManyOps) {
    passes = {{std::max<std::int64_t>(1, problem.ops() / 1600), 30, 0.06}, {1, 30, 1e9}};
    if (problem.ops() <= kMostOps) {
      passes.push_back({0, 500, 1e9});
    }
  }
  for (const Pass& pass : passes) {
    if (pass.afresh) {
      result.removed.clear();
      all = branches(problem, ours, result);
    }
    state.bound_us = kFar;
    const std::int64_t limit =
        options.max_work > 0 || problem.ops() <= kManyOps ? options.max_work : kPassWork;
    std::int64_t spent = 0;
    for (Branch& branch : all) {
      if (branch.bound_us >= state.best_us) {
        continue;
      }
      const std::int64_t before = branch.pipelines->work();
      const bool limited = limit > 0 && !result.plans.empty();
      branch.pipelines->limit(limited ? std::max<std::int64_t>(1, limit - spent) : 0, pass.labels,
                              pass.layers_apart);
      explore(state, branch, state.best_us == kFar ? std::min(pass.slack, 0.06) : pass.slack, most);
      spent += branch.pipelines->work() - before;
      result.work += branch.pipelines->work() - before;
    }
    if (pass.layers_apart > 0) {  // it proves nothing of other cuts
      state.bound_us = all.empty() ? kFar : all.front().bound_us;
    }
    result.exact = state.bound_us >= state.best_us;
  }
  if (result.plans.empty()) {
    std::string why;
    for (const std::string& text : result.removed) {
      why += (why.empty() ? "" : "; ") + text;
    }
    if (why.empty()) {
      why = fmt::format("all need more than the {:g} MB of a GPU", problem.cluster.memory_limit_mb);
    }
    throw Error(fmt::format("no plan fits: {}", why)).at(problem.database->folder);
  }
  std::stable_sort(
      result.plans.begin(), result.plans.end(),
      [](const RankedPlan& a, const RankedPlan& b) { return a.price.time_ms < b.price.time_ms; });
  result.bound_ms = std::min(state.bound_us / 1000, result.plans.front().price.time_ms);
  return result;
}

}  // namespace lockstep::aceso
