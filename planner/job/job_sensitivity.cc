#include "planner/job/job_sensitivity.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/parallel.h"
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
  if (job.pp > 1 && job.dp() > 1 && axes.rank_order.empty()) {
    const std::string other =
        job.rank_order == "tp-cp-ep-dp-pp" ? "tp-cp-ep-pp-dp" : "tp-cp-ep-dp-pp";
    changes.push_back({"ranks " + other, [other](Job& j) { j.rank_order = other; }});
  }
  for (const std::int64_t gpus : axes.gpus) {
    if (gpus != job.gpus) {
      changes.push_back({fmt::format("{} GPUs", gpus), [gpus](Job& j) { j.gpus = gpus; }});
    }
  }
  const bool listed = !job.stage_layers.empty() && axes.stage_layers.empty();
  if (job.first_stage_layers > 0 || job.last_stage_layers > 0 || listed) {
    changes.push_back({"even stages", [](Job& j) {
                         j.first_stage_layers = j.last_stage_layers = 0;
                         j.stage_layers.clear();
                       }});
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

/// In how many axes two plans are the same.
int likeness(const Job& a, const Job& b) {
  return int{a.tp == b.tp} + int{a.cp == b.cp} + int{a.pp == b.pp} + int{a.ep == b.ep} +
         int{a.vpp == b.vpp} + int{a.gpus == b.gpus} + int{a.micro_batch == b.micro_batch} +
         int{a.sharding == b.sharding} + int{a.recompute == b.recompute} +
         int{a.sequence_parallel == b.sequence_parallel} + int{a.rank_order == b.rank_order};
}

/// A plan's variants that keep the rules, without their closed form; the jobs have their model.
std::vector<PlanVariant> variants_of(const JobProblem& problem, const Job& from) {
  std::vector<PlanVariant> all;
  for (const Change& change : changes_of(from, problem.axes)) {
    Job job = from;
    change.make(job);
    if (job.pp * job.vpp != from.pp * from.vpp && problem.axes.stage_layers.empty()) {
      job.stage_layers.clear();
    }
    try {
      if (job.gpus % (job.tp * job.cp * job.pp) != 0) {
        continue;
      }
      job = with_model(problem.base, std::move(job));
      PlanVariant other{change.what, {}, true};
      other.plan.memory = peak_memory(memory_by_stage(job));
      other.fits = other.plan.memory <= problem.memory_limit;
      other.plan.job = std::move(job);
      all.push_back(std::move(other));
    } catch (const Error&) {  // that change breaks a rule
    }
  }
  return all;
}

/// The plans that may win when something changes, and what they take then.
class Rivals {
 public:
  Rivals(const JobProblem& problem, const JobSearchResult& result) : problem_(problem) {
    choice_s_ = result.plans.front().step_s();
    for (const JobPlan& plan : result.plans) {
      add(plan);
      if (plan.priced) {
        replayed_.push_back(plan);
      }
    }
    std::set<std::array<std::int64_t, 6>> shapes;
    for (const JobPlan& plan : result.next) {
      const Job& j = plan.job;
      if (plans_.size() < kMostRivals &&
          shapes.insert({j.gpus, j.tp, j.cp, j.pp, j.ep, j.micro_batch}).second) {
        add(plan);
      }
    }
  }

  const std::vector<JobPlan>& plans() const { return plans_; }
  /// How far the replay of the replayed plan most like it is above its closed form.
  double likely_above(const JobPlan& plan) const {
    const auto most = std::ranges::max_element(
        replayed_, {}, [&](const JobPlan& other) { return likeness(plan.job, other.job); });
    return most == replayed_.end() ? 1 : most->step.step_s / most->floor.step_s;
  }
  double least_above() const {
    double least = replayed_.empty() ? 1 : std::numeric_limits<double>::infinity();
    for (const JobPlan& plan : replayed_) {
      least = std::min(least, plan.step.step_s / plan.floor.step_s);
    }
    return least;
  }
  double above(const JobPlan& plan) const {
    return plan.priced ? plan.step.step_s / plan.floor.step_s
                       : std::max(likely_above(plan), choice_s_ / plan.floor.step_s);
  }
  double value(const JobPlan& plan, StepFloor floor) const {
    JobPlan other = plan;
    other.priced = false;
    other.floor = floor;
    other.floor.step_s *= above(plan);
    return objective_value(problem_, other);
  }
  double value(std::size_t i, StepBound& bound) const {
    return value(plans_[i], bound.of(jobs_[i]));
  }
  std::size_t size() const { return plans_.size(); }

  /// Adds what is found from the best of the plans on, one change after the other.
  void climb(StepBound& bound, StepBound& usual) {
    std::size_t best = 0;
    double least = value(0, bound);
    for (std::size_t i = 1; i < plans_.size(); ++i) {
      if (const double other = value(i, bound); other < least) {
        least = other;
        best = i;
      }
    }
    for (int step = 0; step < kMostSteps; ++step) {
      std::optional<JobPlan> next;
      Job job = jobs_[best];
      job.model = {};
      for (PlanVariant& each : variants_of(problem_, job)) {
        if (!each.fits) {
          continue;
        }
        const StepFloor then = bound.of(each.plan.job);
        each.plan.floor = usual.of(each.plan.job);
        each.plan.job.model = {};
        if (const double other = value(each.plan, then); other < least) {
          least = other;
          next = std::move(each.plan);
        }
      }
      if (!next) {
        return;
      }
      best = plans_.size();
      add(*next);
    }
  }

 private:
  static constexpr std::size_t kMostRivals = 60;
  static constexpr int kMostSteps = 4;

  void add(const JobPlan& plan) {
    jobs_.push_back(with_model(problem_.base, plan.job));
    plans_.push_back(plan);
  }

  const JobProblem& problem_;
  std::vector<JobPlan> plans_;     ///< the first is the choice
  std::vector<Job> jobs_;          ///< the same, with their model
  std::vector<JobPlan> replayed_;  ///< best first
  double choice_s_ = 0;
};

void add_memory(const JobProblem& problem, const JobSearchResult& result, const Rivals& rivals,
                std::vector<TippingPoint>& points) {
  const auto limit = static_cast<double>(problem.memory_limit.count());
  const JobPlan& choice = rivals.plans().front();
  const double now = rivals.value(choice, choice.floor);
  TippingPoint less{"less memory", 0, {}, 0}, more{"more memory", 0, {}, 0};
  double best = 0;
  for (const auto* list : {&result.plans, &result.next}) {
    for (const JobPlan& plan : *list) {
      const double value = rivals.value(plan, plan.floor);
      if (plan.memory < choice.memory && (less.factor == 0 || value < best)) {
        best = value;
        less = {less.what, static_cast<double>(choice.memory.count()) / limit, plan,
                1 - value / now};
      }
    }
  }
  for (const JobPlan& plan : result.misses) {
    JobPlan other = plan;  // nothing says that it is no better than the choice
    other.floor.step_s *= rivals.least_above();
    const double factor = static_cast<double>(plan.memory.count()) / limit;
    if (const double value = objective_value(problem, other);
        value * kWorthwhile < now && (more.factor == 0 || factor < more.factor)) {
      more = {more.what, factor, plan, 1 - value / now};
    }
  }
  points.push_back(std::move(less));
  points.push_back(std::move(more));
}

}  // namespace

std::vector<PlanVariant> neighbours(const JobProblem& problem, const JobPlan& plan) {
  StepBound bound(*problem.topology, problem.operator_time());
  std::vector<PlanVariant> all = variants_of(problem, plan.job);
  for (PlanVariant& each : all) {
    each.plan.floor = bound.of(each.plan.job);
    each.plan.job.model = {};
  }
  return all;
}

std::vector<TippingPoint> tipping_points(const JobProblem& problem, const JobSearchResult& result) {
  const Rivals known(problem, result);
  std::vector<TippingPoint> points(2 * kParameters.size());
  for_each_in_parallel(points.size(), problem.threads, [&](std::size_t i) {
    const Parameter& parameter = kParameters[i / 2];
    const bool higher = i % 2 != 0;
    TippingPoint& point = points[i];
    point.what = fmt::format("{} {}", higher ? "higher" : "lower", parameter.name);
    const auto bound_at = [&](double factor) {
      Speeds speeds;
      speeds.*parameter.speed = higher ? factor : 1 / factor;
      return std::make_unique<StepBound>(*problem.topology, problem.operator_time(), speeds);
    };
    StepBound usual(*problem.topology, problem.operator_time());
    Rivals rivals = known;
    rivals.climb(*bound_at(kFactors.back()), usual);
    for (const double factor : kFactors) {
      const std::unique_ptr<StepBound> bound = bound_at(factor);
      const double choice = rivals.value(0, *bound);
      double best = choice;
      std::size_t winner = 0;
      for (std::size_t k = 1; k < rivals.size(); ++k) {
        if (const double value = rivals.value(k, *bound); value < best) {
          best = value;
          winner = k;
        }
      }
      if (winner > 0 && best * kWorthwhile < choice) {
        point.factor = higher ? factor : 1 / factor;
        point.instead = rivals.plans()[winner];
        point.gain = 1 - best / choice;
        break;
      }
    }
  });
  add_memory(problem, result, known, points);
  return points;
}

}  // namespace lockstep
