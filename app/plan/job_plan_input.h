#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/generate_exact.h"
#include "app/plan/job_plan_options.h"
#include "app/plan/job_words.h"
#include "planner/job/job_search.h"
#include "simulator/replay/replay.h"
#include "simulator/replay/straggler.h"
#include "topologies/topology.h"

namespace lockstep {

/// What `lockstep plan --model` is asked, read and checked.
struct JobPlanInput {
  explicit JobPlanInput(const JobPlanOptions& given) : options(given) {}

  const JobPlanOptions& options;
  JobWords words;  ///< `rest` without the axes
  ExactJob exact;
  Topology topology;
  PlanObjective objective = PlanObjective::kTime;
  int threads = 1;
  std::vector<Straggler> stragglers;
  std::function<bool()> stop;  ///< of --deadline; else empty
  double latency_factor = 1;   ///< SimulateOptions::latency_factor of all prices

  /// What all prices are of, for the journal.
  std::string problem_text() const;
};

/// ERRORS: Error naming the flag or file.
JobPlanInput read_job_plan(const JobPlanOptions& options);

/// --gpu-price and --gpu-power for a GPU type: one for all, or TYPE=VALUE lists. ERRORS: no number;
/// the objective needs one of this type.
GpuRates rates_for(const JobPlanOptions& options, std::string_view gpu_type);

/// A step as `lockstep simulate --engine flow` finds it. ERRORS: ReplayGivenUp by the limits.
PricedStep priced_step(const JobPlanInput& input, const Workload& workload, bool sprayed,
                       std::span<const Straggler> stragglers = {}, std::int64_t step = 0,
                       ReplayLimits limits = {});

/// The search for plans whose pipelines may differ (planner/job/mixed_search.h), and its output.
ExitCode run_mixed_plan(const JobPlanInput& input);

}  // namespace lockstep
