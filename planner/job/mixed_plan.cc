#include "planner/job/mixed_plan.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lockstep {

MixedJob with_model(const Job& base, MixedJob job) {
  job.base = with_model(base, std::move(job.base));
  return job;
}

double objective_value(const MixedProblem& problem, const MixedPlan& plan) {
  if (problem.objective == PlanObjective::kTime) {
    return plan.step_s();
  }
  if (problem.objective == PlanObjective::kMemory) {
    return static_cast<double>(plan.memory.count());
  }
  const double step = plan.step_s();
  double sum = 0;
  for (const PipelineKind& kind : plan.job.kinds) {
    for (const std::size_t type : kind.gpu_type) {
      const auto gpus = static_cast<double>(kind.pipelines() * plan.job.width());
      const GpuRates& rates = problem.rates[type];
      sum += gpus * (problem.objective == PlanObjective::kCost
                         ? step * rates.usd_per_hour / 3600
                         : rates.idle_watts * step + (rates.busy_watts - rates.idle_watts) *
                                                         std::min(plan.floor.compute_s, step));
    }
  }
  return sum;
}

std::string plan_text(const MixedPlan& plan) {
  const Job& base = plan.job.base;
  std::string text =
      fmt::format(
          "tp {}{}{}{}{}, microbatch {}{}{}", base.tp, base.sequence_parallel ? " sp" : "",
          base.cp > 1 ? fmt::format(" cp {}", base.cp) : "",
          base.ep > 1 ? fmt::format(" ep {}", base.ep) : "",
          base.expert_tp > 0 && base.expert_tp != base.tp ? fmt::format(" etp {}", base.expert_tp)
                                                          : "",
          base.micro_batch,
          base.sharding == Sharding::kNone ? ""
          : base.hsdp_replicas > 1         ? fmt::format(", ZeRO-3 x{}", base.hsdp_replicas)
                                   : fmt::format(", ZeRO-{}", static_cast<int>(base.sharding)),
          base.recompute == Recompute::kFull        ? ", full recomputation"
          : base.recompute == Recompute::kSelective ? ", selective recomputation"
                                                    : "") +
      (plan.stage_by_stage ? ", placed by stage" : "");
  for (std::size_t k = 0; k < plan.job.kinds.size(); ++k) {
    const PipelineKind& kind = plan.job.kinds[k];
    text += fmt::format("{}{} x ", k == 0 ? ": " : "; ", kind.pipelines() * plan.job.copies);
    const std::size_t stages = kind.gpu_type.size();
    for (std::size_t s = 0; s < kind.layers.size();) {
      std::size_t end = s;
      while (end < kind.layers.size() && end / stages == s / stages &&
             kind.gpu_type[end % stages] == kind.gpu_type[s % stages]) {
        ++end;
      }
      const std::vector<std::int64_t> some(kind.layers.begin() + static_cast<std::ptrdiff_t>(s),
                                           kind.layers.begin() + static_cast<std::ptrdiff_t>(end));
      text += fmt::format("{}{} {}", s == 0 ? "" : " > ",
                          plan.job.gpu_types[kind.gpu_type[s % stages]], fmt::join(some, "-"));
      s = end;
    }
    text += fmt::format(" of {}", kind.microbatches);
  }
  return text;
}

}  // namespace lockstep
