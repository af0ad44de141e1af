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

/// Of an axis that the search looks at such values of, where it is free.
bool allows(const std::vector<std::int64_t>& pinned, std::int64_t value,
            const std::vector<std::int64_t>& free) {
  return allows(pinned.empty() ? free : pinned, value);
}

struct Change {
  std::string what;
  std::function<void(Job&)> make;
};

/// One change each, to what the search looks at; rules are not asked.
std::vector<Change> changes_of(const Job& job, const JobProblem& problem) {
  const PlanAxes& axes = problem.axes;
  std::vector<Change> changes;
  const auto degree = [&](const char* name, std::int64_t Job::*axis,
                          const std::vector<std::int64_t>& pinned,
                          const std::vector<std::int64_t>& free) {
    for (const std::int64_t value : {job.*axis / 2, job.*axis * 2}) {
      if (value >= 1 && value != job.*axis && allows(pinned, value, free)) {
        changes.push_back({fmt::format("{} {}", name, value), [axis, value](Job& j) {
                             j.*axis = value;
                             j.sequence_parallel = j.sequence_parallel && j.tp > 1;
                           }});
      }
    }
  };
  degree("tp", &Job::tp, axes.tp, divisors(job.gpus, 2 * problem.limits.gpus_per_server));
  degree("pp", &Job::pp, axes.pp, divisors(job.gpus, job.gpus));
  degree("cp", &Job::cp, axes.cp, free_context(job.seq));
  degree("ep", &Job::ep, axes.ep, divisors(job.gpus, job.gpus));
  degree("microbatch", &Job::micro_batch, axes.micro_batch, free_microbatches(job.seq));
  for (const std::int64_t vpp : {job.vpp - 1, job.vpp + 1}) {
    if (vpp >= 1 && vpp <= kMostChunks && allows(axes.vpp, vpp)) {
      changes.push_back({fmt::format("vpp {}", vpp), [vpp](Job& j) { j.vpp = vpp; }});
    }
  }
  for (const Sharding sharding :
       {Sharding::kNone, Sharding::kZero1, Sharding::kZero2, Sharding::kZero3}) {
    if (sharding != job.sharding && allows(axes.sharding, sharding) &&
        (sharding == Sharding::kNone || job.dp() * job.cp > 1)) {
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
  for (const Change& change : changes_of(from, problem)) {
    Job job = from;
    change.make(job);
    if (job.pp * job.vpp != from.pp * from.vpp && problem.axes.stage_layers.empty()) {
      job.stage_layers.clear();
    }
    try {
      if (job.gpus % (job.tp * job.cp * job.pp) != 0) {
        continue;
      }
      if (job.dp() * job.cp == 1 && allows(problem.axes.sharding, Sharding::kNone)) {
        job.sharding = Sharding::kNone;
        job.hsdp_replicas = 1;
      }
      if (job.hsdp_replicas > 1 && problem.axes.hsdp_replicas.empty()) {
        job.hsdp_replicas = free_replicas(job, problem.limits).back();
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
    std::ranges::for_each(result.beaten, [&](const JobPlan& plan) { add(plan); });
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
                       : std::max(likely_above(plan),
                                  std::max(choice_s_, plan.beyond_s) / plan.floor.step_s);
  }
  double value(const JobPlan& plan, const StepFloor& floor) const {
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
  const Job& job(std::size_t i) const { return jobs_[i]; }

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

/// The replays of one of the changes, as long as its share of work lasts.
class Replays {
 public:
  Replays(const JobProblem& problem, const JobSearchResult& result, const PriceJobAt& price)
      : problem_(problem),
        price_(price),
        usual_(result.plans.front().step.work),
        work_(std::max(kLeastWork, result.work / 40)),
        refused_(work_ < kFewest * usual_) {}

  /// What the objective makes of the plan then; nothing once the share is used up or a replay was
  /// too large. The job has its model.
  std::optional<double> value(const JobPlan& plan, const Job& job, const Speeds& speeds) {
    if (refused_ || work_ < (plan.priced ? plan.step.work : usual_)) {
      refused_ = true;
      return std::nullopt;
    }
    const Price found = price_(job, speeds, work_);
    if (!found.step) {
      refused_ = true;
      return std::nullopt;
    }
    work_ -= found.work;
    JobPlan other = plan;
    other.priced = true;
    other.step = *found.step;
    return objective_value(problem_, other);
  }
  /// Some were asked for in vain.
  bool refused() const { return refused_; }

 private:
  static constexpr std::int64_t kLeastWork = 500'000;
  static constexpr std::int64_t kFewest = 3;  // with fewer of the usual size none is begun

  const JobProblem& problem_;
  const PriceJobAt& price_;
  std::int64_t usual_;  ///< what a replay takes: the choice's
  std::int64_t work_;   ///< left
  bool refused_;
};

/// What beats the choice, with all rates by these factors.
struct Winner {
  std::size_t rival = 0;
  double gain = 0;
  bool replayed = false;
};

std::optional<Winner> better_of(const std::vector<double>& values, bool replayed) {
  const auto best = static_cast<std::size_t>(std::ranges::min_element(values) - values.begin());
  if (best == 0 || !(values[best] * kWorthwhile < values[0])) {
    return std::nullopt;
  }
  return Winner{best, 1 - values[best] / values[0], replayed};
}

/// `most`: how many are replayed beside the choice, those first that are best by closed form.
std::optional<Winner> winner_at(const Rivals& rivals, StepBound& bound, const Speeds& speeds,
                                int most, Replays& replays) {
  std::vector<double> told(rivals.size());
  for (std::size_t k = 0; k < rivals.size(); ++k) {
    told[k] = rivals.value(k, bound);
  }
  std::vector<double> values = told;
  std::vector<bool> replayed(rivals.size());
  std::size_t next = 0;  // the choice
  for (int i = 0; i <= most; ++i) {
    const std::optional<double> value =
        replays.value(rivals.plans()[next], rivals.job(next), speeds);
    if (!value) {
      return better_of(told, false);
    }
    values[next] = *value;
    replayed[next] = true;
    const std::optional<Winner> found = better_of(values, true);
    if (!found || replayed[found->rival]) {
      return found;
    }
    next = found->rival;
  }
  for (std::size_t k = 0; k < rivals.size(); ++k) {
    if (!replayed[k]) {
      values[k] = std::numeric_limits<double>::infinity();
    }
  }
  return better_of(values, true);
}

constexpr int kMostForMemory = 8;  // replays

/// The best plan that needs less memory than the choice.
TippingPoint less_memory(const JobProblem& problem, const JobSearchResult& result,
                         const Rivals& rivals, Replays replays) {
  TippingPoint point{.what = "less memory"};
  const JobPlan& choice = rivals.plans().front();
  struct Left {
    const JobPlan* plan;
    double value;
    bool replayed;
  };
  std::vector<Left> left;
  for (const auto* list : {&result.plans, &result.next}) {
    for (const JobPlan& plan : *list) {
      if (plan.memory < choice.memory) {
        left.push_back({&plan, rivals.value(plan, plan.floor), plan.priced});
      }
    }
  }
  if (left.empty()) {
    point.replayed = true;
    return point;
  }
  auto best = std::ranges::min_element(left, {}, &Left::value);
  for (int i = 0; i < kMostForMemory && !best->replayed; ++i) {
    const std::optional<double> value =
        replays.value(*best->plan, with_model(problem.base, best->plan->job), {});
    if (!value) {
      break;
    }
    best->value = *value;
    best->replayed = true;
    best = std::ranges::min_element(left, {}, &Left::value);
  }
  point.factor = static_cast<double>(choice.memory.count()) /
                 static_cast<double>(problem.memory_limit.count());
  point.instead = *best->plan;
  point.gain = 1 - best->value / rivals.value(choice, choice.floor);
  point.replayed = best->replayed;
  return point;
}

/// The first plan that would win if it fitted.
TippingPoint more_memory(const JobProblem& problem, const JobSearchResult& result,
                         const Rivals& rivals, Replays replays) {
  TippingPoint point{.what = "more memory"};
  const JobPlan& choice = rivals.plans().front();
  const double now = rivals.value(choice, choice.floor);
  std::vector<std::pair<const JobPlan*, double>> hopes;
  for (const JobPlan& plan : result.misses) {
    JobPlan other = plan;  // nothing says that it is no better than the choice
    other.floor.step_s *= rivals.least_above();
    if (const double value = objective_value(problem, other); value * kWorthwhile < now) {
      hopes.emplace_back(&plan, value);
    }
  }
  std::ranges::stable_sort(hopes, {}, [](const auto& hope) { return hope.first->memory; });
  int tries = 0;
  for (const auto& [plan, told] : hopes) {
    const std::optional<double> found =
        tries++ < kMostForMemory ? replays.value(*plan, with_model(problem.base, plan->job), {})
                                 : std::nullopt;
    const double value = found.value_or(told);
    if (value * kWorthwhile < now) {
      point.factor = static_cast<double>(plan->memory.count()) /
                     static_cast<double>(problem.memory_limit.count());
      point.instead = *plan;
      point.gain = 1 - value / now;
      point.replayed = found.has_value();
      return point;
    }
  }
  point.replayed = !replays.refused();
  return point;
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

std::vector<TippingPoint> tipping_points(const JobProblem& problem, const JobSearchResult& result,
                                         const PriceJobAt& price) {
  const Rivals known(problem, result);
  constexpr std::size_t kOfRates = 2 * kParameters.size();
  constexpr int kMostAtEach = 2, kMostAtLast = 16;
  std::vector<TippingPoint> points(kOfRates + 2);
  const auto of_rate = [&](std::size_t i, Replays replays) {
    const Parameter& parameter = kParameters[i / 2];
    const bool higher = i % 2 != 0;
    TippingPoint point{.what = fmt::format("{} {}", higher ? "higher" : "lower", parameter.name)};
    const auto speeds_at = [&](double factor) {
      Speeds speeds;
      speeds.*parameter.speed = higher ? factor : 1 / factor;
      return speeds;
    };
    const auto bound_of = [&](const Speeds& speeds) {
      return std::make_unique<StepBound>(*problem.topology, problem.operator_time(), speeds);
    };
    Rivals rivals = known;
    rivals.climb(*bound_of(speeds_at(kFactors.back())), *bound_of({}));
    for (const double factor : kFactors) {
      const Speeds speeds = speeds_at(factor);
      const int most = factor == kFactors.back() ? kMostAtLast : kMostAtEach;
      const auto winner = winner_at(rivals, *bound_of(speeds), speeds, most, replays);
      if (winner) {
        point.factor = speeds.*parameter.speed;
        point.instead = rivals.plans()[winner->rival];
        point.gain = winner->gain;
        point.replayed = winner->replayed;
        return point;
      }
    }
    point.replayed = !replays.refused();
    return point;
  };
  for_each_in_parallel(points.size(), problem.threads, [&](std::size_t i) {
    const Replays replays(problem, result, price);
    points[i] = i < kOfRates    ? of_rate(i, replays)
                : i == kOfRates ? less_memory(problem, result, known, replays)
                                : more_memory(problem, result, known, replays);
  });
  return points;
}

}  // namespace lockstep
