#include "planner/job/job_sensitivity.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "generator/exact/memory.h"
#include "generator/exact/rank_sizes.h"
#include "generator/exact/stage_plan.h"

namespace lockstep {
namespace {

constexpr std::array kFactors = {1.25, 1.5, 2.0, 3.0, 4.0, 8.0};
constexpr double kWorthwhile = 1.001;

bool allows(const auto& pinned, const auto& value) {
  return pinned.empty() || std::ranges::find(pinned, value) != pinned.end();
}

struct Change {
  std::string what;
  std::function<void(Job&)> make;
};

std::vector<Change> changes_of(const Job& job, const PlanAxes& axes) {
  std::vector<Change> changes;
  const auto degree = [&](const char* name, std::int64_t Job::*axis,
                          const std::vector<std::int64_t>& pinned) {
    for (const std::int64_t value : {job.*axis / 2, job.*axis * 2}) {
      if (value >= 1 && value != job.*axis && allows(pinned, value)) {
        changes.push_back({fmt::format("{} {}", name, value), [axis, value](Job& j) {
                             j.*axis = value;
                             j.sequence_parallel = j.sequence_parallel && j.tp > 1;
                           }});
      }
    }
  };
  degree("tp", &Job::tp, axes.tp);
  degree("pp", &Job::pp, axes.pp);
  degree("cp", &Job::cp, axes.cp);
  degree("ep", &Job::ep, axes.ep);
  degree("microbatch", &Job::micro_batch, axes.micro_batch);
  for (const std::int64_t vpp : {job.vpp - 1, job.vpp + 1}) {
    if (vpp >= 1 && allows(axes.vpp, vpp)) {
      changes.push_back({fmt::format("vpp {}", vpp), [vpp](Job& j) { j.vpp = vpp; }});
    }
  }
  for (const Sharding sharding :
       {Sharding::kNone, Sharding::kZero1, Sharding::kZero2, Sharding::kZero3}) {
    if (sharding != job.sharding && allows(axes.sharding, sharding)) {
      changes.push_back({fmt::format("ZeRO-{}", static_cast<int>(sharding)), [sharding](Job& j) {
                           j.sharding = sharding;
                           j.hsdp_replicas = 1;
                         }});
    }
  }
  for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
    if (recompute != job.recompute && allows(axes.recompute, recompute)) {
      changes.push_back({recompute == Recompute::kNone ? "no recomputation" : "full recomputation",
                         [recompute](Job& j) { j.recompute = recompute; }});
    }
  }
  if (job.tp > 1 && allows(axes.sequence_parallel, !job.sequence_parallel)) {
    changes.push_back({job.sequence_parallel ? "no sequence parallelism" : "sequence parallelism",
                       [](Job& j) { j.sequence_parallel = !j.sequence_parallel; }});
  }
  if (job.first_stage_layers > 0 || job.last_stage_layers > 0) {
    changes.push_back(
        {"even stages", [](Job& j) { j.first_stage_layers = j.last_stage_layers = 0; }});
  }
  return changes;
}

struct Parameter {
  const char* name;
  double Speeds::*speed;
};
constexpr std::array kParameters = {
    Parameter{"NVLink bandwidth", &Speeds::nvlink}, Parameter{"NIC bandwidth", &Speeds::nic},
    Parameter{"network latency", &Speeds::latency}, Parameter{"GPU speed", &Speeds::compute}};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 1 : values[values.size() / 2];
}

}  // namespace

std::vector<PlanVariant> neighbours(const JobProblem& problem, const JobPlan& plan) {
  StepBound bound(*problem.topology, problem.operator_time());
  std::vector<PlanVariant> all;
  for (const Change& change : changes_of(plan.job, problem.axes)) {
    Job job = plan.job;
    change.make(job);
    const std::int64_t cut = job.tp * job.cp * job.pp;
    try {
      if (job.gpus % cut != 0) {
        continue;
      }
      job = with_model(problem.base, std::move(job));
      PlanVariant other{change.what, {}, true};
      other.plan.memory = peak_memory(memory_by_stage(job));
      other.plan.floor = bound.of(job);
      other.fits = other.plan.memory <= problem.memory_limit;
      job.model = {};
      other.plan.job = std::move(job);
      all.push_back(std::move(other));
    } catch (const Error&) {  // that change breaks a rule
    }
  }
  return all;
}

std::vector<TippingPoint> tipping_points(const JobProblem& problem,
                                         const std::vector<JobPlan>& candidates) {
  std::vector<double> ratios;
  for (const JobPlan& plan : candidates) {
    if (plan.priced) {
      ratios.push_back(plan.step.step_s / plan.floor.step_s);
    }
  }
  const double usual = median(std::move(ratios));
  std::vector<Job> jobs;
  std::vector<double> above;
  for (const JobPlan& plan : candidates) {
    jobs.push_back(with_model(problem.base, plan.job));
    above.push_back(plan.priced ? plan.step.step_s / plan.floor.step_s : usual);
  }
  std::vector<TippingPoint> points;
  for (const Parameter& parameter : kParameters) {
    for (const bool higher : {false, true}) {
      TippingPoint point{
          fmt::format("{} {}", higher ? "higher" : "lower", parameter.name), 0, {}, 0};
      for (const double factor : kFactors) {
        Speeds speeds;
        speeds.*parameter.speed = higher ? factor : 1 / factor;
        StepBound bound(*problem.topology, problem.operator_time(), speeds);
        double choice = 0, best = 0;
        std::size_t winner = 0;
        for (std::size_t i = 0; i < jobs.size(); ++i) {
          JobPlan plan = candidates[i];
          plan.priced = false;
          plan.floor = bound.of(jobs[i]);
          plan.floor.step_s *= above[i];
          const double value = objective_value(problem, plan);
          if (i == 0) {
            choice = best = value;
          } else if (value < best) {
            best = value;
            winner = i;
          }
        }
        if (winner > 0 && best * kWorthwhile < choice) {
          point.factor = higher ? factor : 1 / factor;
          point.instead = candidates[winner];
          point.gain = 1 - best / choice;
          break;
        }
      }
      points.push_back(std::move(point));
    }
  }
  return points;
}

}  // namespace lockstep
