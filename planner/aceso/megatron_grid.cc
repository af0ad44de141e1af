#include "planner/aceso/megatron_grid.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep::aceso {
namespace {

/// `stages` times the ops of `layers` layers, with what comes before the first and after the last.
std::vector<std::int64_t> equal_stages(std::int64_t stages, std::int64_t ops, std::int64_t before,
                                       std::int64_t after) {
  std::vector<std::int64_t> cuts(static_cast<std::size_t>(stages), ops);
  cuts.front() += before;
  cuts.back() += after;
  return cuts;
}

/// Every way to cut the model into so many equal stages: the ops of each.
std::vector<std::vector<std::int64_t>> cuts_of(const Problem& problem, std::int64_t stages) {
  const std::int64_t layers = problem.model->layers;
  switch (problem.model->family) {
    case Family::kGpt:
    case Family::kScaleLayer:
      if (layers % stages != 0) {
        return {};
      }
      return {equal_stages(stages, layers / stages * kEncoderLayer, 1, 2)};
    case Family::kResnet: {
      if (layers < stages) {
        return {};
      }
      const std::int64_t rest = layers % stages * kResnetBlock;
      return {equal_stages(stages, layers / stages * kResnetBlock, kResnetHead, 2 + rest)};
    }
    case Family::kT5:
      break;
  }
  if (stages == 1) {
    return {{problem.ops()}};
  }
  std::vector<std::vector<std::int64_t>> all;
  for (std::int64_t encoder = 1; encoder < stages; ++encoder) {
    const std::int64_t decoder = stages - encoder;
    if (layers % encoder == 0 && layers % decoder == 0) {
      all.push_back(equal_stages(encoder, layers / encoder * kEncoderLayer, 1, 1));
      const auto rest = equal_stages(decoder, layers / decoder * kDecoderLayer, 1, 2);
      all.back().insert(all.back().end(), rest.begin(), rest.end());
    }
  }
  return all;
}

Plan regular_plan(const Problem& problem, const std::vector<std::int64_t>& cuts, int tp, int dp,
                  std::int64_t microbatch, bool recompute) {
  Plan plan{.global_batch = problem.global_batch, .microbatch = microbatch};
  for (const std::int64_t ops : cuts) {
    Stage stage{.gpus = tp * dp};
    stage.places.assign(static_cast<std::size_t>(ops), {tp, dp, 0});
    stage.recompute.assign(static_cast<std::size_t>(ops), recompute ? 1 : 0);
    plan.stages.push_back(std::move(stage));
  }
  if (problem.model->family != Family::kResnet) {
    plan.stages.front().recompute.front() = 0;
    plan.stages.back().recompute.back() = 0;
  }
  return plan;
}

}  // namespace

SearchResult megatron_grid(const Problem& problem) {
  SearchResult result{.exact = false};
  std::vector<RankedPlan>& plans = result.plans;
  std::vector<std::int64_t> microbatches;
  for (const std::int64_t microbatch : problem.microbatches) {
    if (problem.global_batch % microbatch == 0) {
      microbatches.push_back(microbatch);
    } else {
      result.removed.push_back(no_multiple(problem, microbatch));
    }
  }
  const int gpus = problem.cluster.gpus();
  const auto listed = [&](std::int64_t value) {
    return std::find(problem.microbatches.begin(), problem.microbatches.end(), value) !=
           problem.microbatches.end();
  };
  for (int stages = 1; stages <= std::min(gpus, problem.max_stages); ++stages) {
    for (int tp = 1; tp <= problem.max_tp && stages * tp <= gpus; tp *= 2) {
      const int dp = gpus / (stages * tp);
      if (gpus % (stages * tp) != 0) {
        continue;
      }
      for (const std::int64_t microbatch : microbatches) {
        if (microbatch % dp != 0 || !listed(microbatch / dp)) {
          continue;
        }
        for (const auto& cuts : cuts_of(problem, stages)) {
          for (const bool recompute : {true, false}) {
            Plan plan = regular_plan(problem, cuts, tp, dp, microbatch, recompute);
            PlanPrice price = price_plan(plan, *problem.database, *problem.model, problem.cluster,
                                         problem.flavour);
            if (price.memory_mb <= problem.cluster.memory_limit_mb - problem.spare_mb) {
              plans.push_back({std::move(plan), std::move(price)});
            }
          }
        }
      }
    }
  }
  if (plans.empty()) {
    Error error =
        Error(fmt::format("no regular plan fits {:.0f} MB", problem.cluster.memory_limit_mb))
            .at(problem.database->folder);
    for (const std::string& part : result.removed) {
      error.add_context(part);
    }
    throw error;
  }
  std::stable_sort(plans.begin(), plans.end(), [](const RankedPlan& a, const RankedPlan& b) {
    return a.price.time_ms != b.price.time_ms ? a.price.time_ms < b.price.time_ms
                                              : a.price.memory_mb < b.price.memory_mb;
  });
  result.work = static_cast<std::int64_t>(plans.size());
  return result;
}

}  // namespace lockstep::aceso
