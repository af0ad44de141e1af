#include "app/step_score/score_steps.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <map>

#include <fmt/format.h>

#include "app/simulate/run_flow.h"
#include "base/error.h"
#include "base/stop_signal.h"
#include "generator/compute/compute_times.h"
#include "generator/compute/gpu_spec.h"
#include "generator/exact/exact_workload.h"
#include "simulator/replay/replay.h"
#include "topologies/topology_file.h"

namespace lockstep {

namespace {

/// Whether this process has worked for so long since now. Looks at the clock at the first call and
/// then once in a while.
std::function<bool()> after(Time limit) {
  const auto seconds = [] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
  return [=, end = seconds() + limit.seconds(), calls = 0U]() mutable {
    constexpr unsigned kOnceIn = 256;
    return calls++ % kOnceIn == 0 && seconds() > end;
  };
}

}  // namespace

ScoredStep predict(const PublishedStep& step, const PredictionOptions& given) {
  ScoredStep scored{&step, 0, {}};
  SimulateOptions options;
  options.quiet = true;
  options.spray = true;
  if (given.limit) {
    options.limits.stop = after(*given.limit);
  }
  try {
    Job job = step.job;
    if (given.launch && job.host_launch > Time()) {
      job.host_launch = *given.launch;
    }
    if (given.recipe_overlap) {
      job.product_overlap = step.recipe_overlap;
    }
    ComputeTimes times(gpu_spec(job.gpu_type), job.precision);
    const auto time_of = [&](const Operator& op) {
      Operator launched = op;
      launched.flash_kernels = step.flash_kernels;
      return times(launched);
    };
    const Workload workload = exact_workload(job, time_of);
    scored.predicted_s =
        run_flow(workload, topology_from(step.topology), options, nullptr).total.seconds();
  } catch (const ReplayGivenUp&) {
    scored.failure = fmt::format("takes longer than {:g} s", given.limit->seconds());
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& error) {
    scored.failure = error.message();
  }
  return scored;
}

bool is_in(RowHalf half, const PublishedStep& step) {
  return half == RowHalf::kBoth || (step.row % 2 == 1) == (half == RowHalf::kOdd);
}

std::vector<StepScore> scores_of(std::span<const ScoredStep> steps, RowHalf half) {
  std::map<std::string, std::vector<double>> ratios;
  std::vector<double> all;
  for (const ScoredStep& step : steps) {
    if (step.failure.empty() && is_in(half, *step.step)) {
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
