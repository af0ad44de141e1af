#include "app/step_score/score_steps.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "app/simulate/run_flow.h"
#include "base/error.h"
#include "generator/compute/compute_times.h"
#include "generator/compute/gpu_spec.h"
#include "generator/exact/exact_workload.h"
#include "topologies/topology_file.h"

namespace lockstep {

ScoredStep predict(const PublishedStep& step, const std::optional<Time>& launch) {
  ScoredStep scored{&step, 0, {}};
  try {
    Job job = step.job;
    if (launch && job.host_launch > Time()) {
      job.host_launch = *launch;
    }
    ComputeTimes times(gpu_spec(job.gpu_type), job.precision);
    const auto time_of = [&](const Operator& op) {
      Operator launched = op;
      launched.flash_kernels = step.flash_kernels;
      return times(launched);
    };
    const Workload workload = exact_workload(job, time_of);
    SimulateOptions options;
    options.quiet = true;
    options.spray = true;
    scored.predicted_s =
        run_flow(workload, topology_from(step.topology), options, nullptr).total.seconds();
  } catch (const Error& error) {
    scored.failure = error.message();
  }
  return scored;
}

std::vector<StepScore> scores_of(std::span<const ScoredStep> steps) {
  std::map<std::string, std::vector<double>> ratios;
  std::vector<double> all;
  for (const ScoredStep& step : steps) {
    if (step.failure.empty()) {
      ratios[step.step->source].push_back(step.ratio());
      all.push_back(step.ratio());
    }
  }
  std::vector<StepScore> scores;
  const auto score = [&](const std::string& source, const std::vector<double>& of) {
    StepScore out{source, of.size(), 0, 0, 0, 0};
    std::vector<double> errors;
    double logs = 0;
    for (const double ratio : of) {
      errors.push_back(std::abs(ratio - 1));
      out.mean += errors.back() / static_cast<double>(of.size());
      logs += std::log(ratio);
    }
    std::ranges::sort(errors);
    const std::size_t n = errors.size();
    out.median = n % 2 == 1 ? errors[n / 2] : (errors[n / 2 - 1] + errors[n / 2]) / 2;
    out.p90 = errors[(9 * n + 9) / 10 - 1];
    out.bias = std::exp(logs / static_cast<double>(n)) - 1;
    scores.push_back(std::move(out));
  };
  for (const auto& [source, of] : ratios) {
    score(source, of);
  }
  if (!all.empty()) {
    score("all", all);
  }
  return scores;
}

}  // namespace lockstep
