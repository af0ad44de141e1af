#include "app/plan/mixed_plan_report.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/plan/job_plan_report.h"
#include "generator/exact/rank_sizes.h"
#include "planner/job/mixed_cuts.h"

namespace lockstep {
namespace {

constexpr std::size_t kListed = 12;

std::string time_text(double seconds) { return to_text(Time::seconds(seconds)); }

std::string_view unit_of(PlanObjective objective) {
  return objective == PlanObjective::kCost     ? "USD a step"
         : objective == PlanObjective::kEnergy ? "J a step"
         : objective == PlanObjective::kMemory ? "bytes"
                                               : "s a step";
}

double tokens_a_second(const MixedProblem& problem, const MixedPlan& plan) {
  return static_cast<double>(problem.base.global_batch) * static_cast<double>(problem.base.seq) /
         plan.step_s();
}

std::string row(const MixedPlan& plan) {
  return fmt::format("{:>11} {:>11} {:>11} {:>5}  {}\n",
                     plan.priced ? time_text(plan.step.step_s) : "-", time_text(plan.floor.step_s),
                     to_text(plan.memory), plan.job.gpus(), plan_text(plan));
}

std::string header() {
  return fmt::format("{:>11} {:>11} {:>11} {:>5}  plan\n", "step", "at least", "memory", "GPUs");
}

/// "16 H100 and 16 A100".
std::string pools_text(const MixedProblem& problem) {
  std::vector<std::string> parts;
  for (const GpuPool& pool : problem.pools) {
    parts.push_back(fmt::format("{} {}", pool.gpus(), pool.type));
  }
  return fmt::format("{}", fmt::join(parts, " and "));
}

bool runs_rank_0(const MixedPlan& plan) {
  return std::ranges::any_of(plan.job.kinds, [](const PipelineKind& kind) {
    return std::ranges::any_of(kind.first_rank, [](const std::vector<std::int32_t>& stages) {
      return std::ranges::count(stages, 0) > 0;
    });
  });
}

/// What the best of another kind loses on and wins, as rank 0 sees it, where both use it.
std::string why_text(const MixedSearchResult& result) {
  const MixedPlan& best = result.plans.front();
  for (const MixedPlan& other : result.families) {
    if (other.family != best.family && other.priced && best.priced && runs_rank_0(best) &&
        runs_rank_0(other)) {
      return fmt::format("\nagainst {}, {}, on rank 0\n", other.family, plan_text(other)) +
             step_differences(best.step, other.step);
    }
  }
  return {};
}

Json plan_json(const MixedProblem& problem, const MixedPlan& plan) {
  Json kinds = Json::array();
  for (const PipelineKind& kind : plan.job.kinds) {
    Json stages = Json::array();
    for (std::size_t s = 0; s < kind.gpu_type.size(); ++s) {
      std::vector<std::int64_t> chunks;
      for (std::size_t v = s; v < kind.layers.size(); v += kind.gpu_type.size()) {
        chunks.push_back(kind.layers[v]);
      }
      stages.push_back({{"layers", std::accumulate(chunks.begin(), chunks.end(), std::int64_t{0})},
                        {"chunk_layers", chunks},
                        {"gpu_type", plan.job.gpu_types[kind.gpu_type[s]]}});
    }
    kinds.push_back({{"pipelines", kind.pipelines()},
                     {"copies", plan.job.copies},
                     {"microbatches", kind.microbatches},
                     {"stages", std::move(stages)},
                     {"first_ranks", kind.first_rank}});
  }
  const Job& base = plan.job.base;
  Json json = {{"plan", plan_text(plan)},
               {"family", plan.family},
               {"gpus", plan.job.gpus()},
               {"tp", base.tp},
               {"cp", base.cp},
               {"ep", base.ep},
               {"expert_tp", expert_tp(base)},
               {"micro_batch", base.micro_batch},
               {"sequence_parallel", base.sequence_parallel},
               {"recompute", base.recompute == Recompute::kFull        ? "full"
                             : base.recompute == Recompute::kSelective ? "selective"
                                                                       : "none"},
               {"zero", static_cast<int>(base.sharding)},
               {"hsdp_replicas", base.hsdp_replicas},
               {"kinds", std::move(kinds)},
               {"step_s", plan.priced ? Json(plan.step.step_s) : Json()},
               {"bound_s", plan.floor.step_s},
               {"memory_bytes", plan.memory.count()},
               {"memory_share", plan.full},
               {"compute_s", plan.floor.compute_s},
               {"value", objective_value(problem, plan)}};
  if (plan.priced) {
    json["tokens_per_s"] = tokens_a_second(problem, plan);
  }
  return json;
}

Json plans_json(const MixedProblem& problem, const std::vector<MixedPlan>& plans) {
  Json list = Json::array();
  for (const MixedPlan& plan : plans) {
    list.push_back(plan_json(problem, plan));
  }
  return list;
}

}  // namespace

std::string mixed_plan_text(const JobPlanInput& input, const MixedProblem& problem,
                            const MixedPlanReport& report) {
  const MixedSearchResult& result = report.result;
  const MixedPlan& best = result.plans.front();
  std::string text = fmt::format(
      "{} on {} of {}: {} cuts, {} divisions of the GPUs, {} plans that fit, {} replayed\n",
      problem.base.model.name, pools_text(problem), input.options.topology, result.cuts,
      result.divisions, result.leaves, result.replays);
  text +=
      fmt::format("best: {}\n  {}{} a step, {:.4g} tokens/s; {} of memory; {}\n", plan_text(best),
                  best.priced ? "" : "not replayed; at least ", time_text(best.step_s()),
                  tokens_a_second(problem, best), to_text(best.memory), best.family);
  for (const std::string& note : report.notes) {
    text += fmt::format("  {}\n", note);
  }
  if (!report.expected_s.empty()) {
    text += fmt::format("  {} a step with the stragglers\n", time_text(report.expected_s.front()));
  }
  const double value = objective_value(problem, best);
  if (result.proven) {
    text += "proven: no plan of the space is better by the replay\n";
  } else {
    text += bound_text(result.bound, unit_of(problem.objective), value, best.priced);
  }
  text += "\nthe best of each kind\n";
  for (const MixedPlan& plan : result.families) {
    text +=
        fmt::format("  {:<38} {:>11} {:>+7.1f} %  {} GPUs compute {:.0f} % of it\n", plan.family,
                    time_text(plan.step_s()), 100 * (objective_value(problem, plan) / value - 1),
                    plan.job.gpus(), 100 * plan.floor.compute_s / plan.step_s());
  }
  text += why_text(result);
  text += "\nfastest for its memory\n" + header();
  for (const MixedPlan& plan : result.front) {
    text += row(plan);
  }
  text += "\nreplayed, best first\n" + header();
  for (std::size_t i = 0; i < std::min(kListed, result.plans.size()); ++i) {
    text += row(result.plans[i]);
  }
  text += "\nwhat would make the best of another kind win, by closed form\n";
  for (const MixedTipping& point : report.tipping) {
    text += point.factor == 0
                ? fmt::format("  {:<20} nothing, up to a factor of 8\n", point.what)
                : fmt::format("  {:<20} x {:.3g}: {}\n", point.what, point.factor, point.family);
  }
  std::int64_t gpus = 0;
  for (const GpuPool& pool : problem.pools) {
    gpus += pool.gpus();
  }
  return text +
         "\nnot in this space: ZeRO-2 and 3 over pipelines with other stages or microbatches than "
         "others, tp that differs between pipelines, schedules other than 1F1B" +
         (gpus <= kMostFreeGpus
              ? "\n"
              : fmt::format("; and, above {} GPUs, cp, chunks, ZeRO-2 and 3 that --cp, --vpp and "
                            "--zero do not name\n",
                            kMostFreeGpus));
}

Json mixed_plan_json(const JobPlanInput& input, const MixedProblem& problem,
                     const MixedPlanReport& report) {
  const MixedSearchResult& result = report.result;
  const MixedPlan& best = result.plans.front();
  const double value = objective_value(problem, best);
  Json pools = Json::array(), tipping = Json::array(), left_out = Json::object();
  for (const GpuPool& pool : problem.pools) {
    pools.push_back({{"gpu_type", pool.type},
                     {"gpus", pool.gpus()},
                     {"servers", pool.servers.size()},
                     {"memory_limit_bytes", pool.memory.count()}});
  }
  for (const MixedTipping& point : report.tipping) {
    tipping.push_back({{"change", point.what},
                       {"factor", point.factor == 0 ? Json() : Json(point.factor)},
                       {"instead", point.factor == 0 ? Json() : Json(point.instead)}});
  }
  for (const auto& [reason, count] : result.left_out) {
    left_out[reason] = count;
  }
  return {{"schema", "lockstep-mixed-plan/1"},
          {"model", problem.base.model.name},
          {"topology", input.options.topology},
          {"objective", input.options.objective},
          {"value", value},
          {"bound", result.bound},
          {"gap", result.bound > 0 && best.priced ? Json(value / result.bound - 1) : Json()},
          {"proven", result.proven},
          {"pools", std::move(pools)},
          {"cuts", result.cuts},
          {"divisions", result.divisions},
          {"plans_fitting", result.leaves},
          {"replays", result.replays},
          {"too_large", result.too_large},
          {"stopped", result.stopped},
          {"routes", report.sprayed ? "sprayed" : "hashed"},
          {"search_work", result.work},
          {"best", plan_json(problem, best)},
          {"expected_s", report.expected_s.empty() ? Json() : Json(report.expected_s)},
          {"families", plans_json(problem, result.families)},
          {"front", plans_json(problem, result.front)},
          {"plans", plans_json(problem, result.plans)},
          {"tipping_points", std::move(tipping)},
          {"left_out", std::move(left_out)},
          {"warnings", input.exact.warnings},
          {"notes", report.notes}};
}

}  // namespace lockstep
