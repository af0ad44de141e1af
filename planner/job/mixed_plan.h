#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "generator/exact/mixed_job.h"
#include "planner/job/job_search.h"
#include "planner/job/mixed_space.h"

namespace lockstep {

/// A plan whose pipelines may differ, with all that is known of it. The job has no model.
struct MixedPlan {
  MixedJob job;
  std::string family;           ///< family_of()
  bool stage_by_stage = false;  ///< how its ranks lie: else pipeline by pipeline
  Bytes memory;                 ///< of the fullest GPU
  double full = 0;              ///< most of what a plan may use of a GPU, as a share
  StepFloor floor;
  bool priced = false;
  PricedStep step;  ///< where it is priced

  double step_s() const { return priced ? step.step_s : floor.step_s; }
};

struct MixedProblem {
  Job base;       ///< as JobProblem::base
  PlanAxes axes;  ///< all but the GPUs, schedule, order of ranks and given layers
  const Topology* topology = nullptr;
  std::vector<GpuPool> pools;
  std::function<std::vector<OperatorTime>()> operator_times;  ///< by pool; each call for one thread
  PlanObjective objective = PlanObjective::kTime;
  std::vector<GpuRates> rates;  ///< by pool
  std::int64_t effort = 0;      ///< as JobProblem::effort; 0: no limit
  int threads = 1;
  std::function<bool()> stop;
  std::function<bool()> simplify;
};

/// A mixed plan's job with the problem's model.
MixedJob with_model(const Job& base, MixedJob job);

/// What the objective makes of a plan.
double objective_value(const MixedProblem& problem, const MixedPlan& plan);

/// "tp 4, microbatch 1, …: 4 pipelines of H100 (14 layers) + A100 (6), 24 microbatches each; …".
std::string plan_text(const MixedPlan& plan);

}  // namespace lockstep
