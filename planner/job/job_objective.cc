// What a search looks for: the value of a plan, and the step time that a value stands for.
#include "planner/job/job_search.h"

namespace lockstep {

double objective_value(const JobProblem& problem, const JobPlan& plan) {
  const auto gpus = static_cast<double>(plan.job.gpus);
  const double step = plan.step_s();
  switch (problem.objective) {
    case PlanObjective::kTime:
      return step;
    case PlanObjective::kCost:
      return step * gpus * problem.rates.usd_per_hour / 3600;
    case PlanObjective::kEnergy: {
      return gpus * (problem.rates.idle_watts * step +
                     (problem.rates.busy_watts - problem.rates.idle_watts) * plan.floor.compute_s);
    }
    case PlanObjective::kMemory:
      return static_cast<double>(plan.memory.count());
  }
  return step;
}

double longest_step_s(const JobProblem& problem, const JobPlan& plan, double value) {
  const auto gpus = static_cast<double>(plan.job.gpus);
  const GpuRates& rates = problem.rates;
  switch (problem.objective) {
    case PlanObjective::kTime:
      return value;
    case PlanObjective::kCost:
      return value / (gpus * rates.usd_per_hour / 3600);
    case PlanObjective::kEnergy: {
      const double busy = (rates.busy_watts - rates.idle_watts) * plan.floor.compute_s;
      return rates.idle_watts > 0 ? (value / gpus - busy) / rates.idle_watts
                                  : std::numeric_limits<double>::infinity();
    }
    case PlanObjective::kMemory:
      return std::numeric_limits<double>::infinity();
  }
  return std::numeric_limits<double>::infinity();
}

}  // namespace lockstep
