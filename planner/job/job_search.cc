#include "planner/job/job_search.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/parallel.h"
#include "generator/exact/memory.h"
#include "generator/exact/rank_sizes.h"
#include "generator/exact/stage_plan.h"

namespace lockstep {
namespace {

constexpr std::size_t kNodesAtOnce = 16;
constexpr std::size_t kKept = 200;   ///< plans that are listed without a price
constexpr double kLessMemory = 0.9;  ///< of the front's plans, from one to the next
constexpr std::int64_t kFrontReplays = 4;
constexpr double kNearMiss = 1.5;              ///< of the memory there is
constexpr std::int64_t kFrontLeaves = 20'000;  ///< looked at for the front, besides

/// A node or a leaf that waits.
struct Waiting {
  double value = 0;
  bool leaf = false;
  std::size_t id = 0;
  /// Nodes before leaves of the same value, so that the order does not depend on when one was made.
  friend bool operator>(const Waiting& a, const Waiting& b) {
    return std::tie(a.value, a.leaf, a.id) > std::tie(b.value, b.leaf, b.id);
  }
};
using Queue = std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>>;

/// What a thread works with.
struct Worker {
  explicit Worker(const JobProblem& problem) : bound(*problem.topology, problem.operator_time()) {}
  StepBound bound;
  std::map<std::string, ModelMemory> memory;
};

struct Expanded {
  std::vector<JobPlan> plans, misses;
  std::optional<JobPlan> smallest;  ///< the one that needs the least memory
  LeftOut left_out;
  std::int64_t leaves = 0;
};

auto shape_of(const Job& job) { return std::tie(job.gpus, job.tp, job.cp, job.pp, job.ep); }

class Search {
 public:
  Search(const JobProblem& problem, const PriceJob& price,
         const std::function<void(std::int64_t)>& progress)
      : problem_(problem),
        price_(price),
        progress_(progress),
        layers_(layer_count(problem.base.model)) {
    const int threads = problem.threads > 0 ? problem.threads : 1;
    for (int i = 0; i < threads; ++i) {
      workers_.push_back(std::make_unique<Worker>(problem));
    }
  }

  JobSearchResult run() {
    nodes_ = job_nodes(problem_.base, problem_.axes, problem_.limits, result_.left_out);
    result_.nodes = std::ssize(nodes_);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      Job whole = with_model(problem_.base, nodes_[i]);
      JobPlan plan;
      plan.job = nodes_[i];
      for (std::size_t k = 0; k < std::max<std::size_t>(1, problem_.axes.schedule.size()); ++k) {
        if (!problem_.axes.schedule.empty()) {
          whole.schedule = problem_.axes.schedule[k];
        }
        const double busy = workers_.front()->bound.busy_s(whole);
        plan.floor.step_s = k == 0 ? busy : std::min(plan.floor.step_s, busy);
      }
      queue_.push({objective_value(problem_, plan), false, i});
    }
    find_best();
    if (best_ == nullptr && result_.fitting == 0) {
      nothing_fits();
    }
    find_front();
    take_rest();
    return std::move(result_);
  }

 private:
  double best_value() const {
    return best_ == nullptr ? std::numeric_limits<double>::infinity()
                            : objective_value(problem_, *best_);
  }

  void find_best() {
    double bound = 0;
    while (!queue_.empty()) {
      bound = std::max(bound, queue_.top().value);
      if (queue_.top().value >= best_value()) {
        break;
      }
      if (!queue_.top().leaf) {
        expand();
        continue;
      }
      if (best_ != nullptr && out_of_effort(0)) {
        result_.bound = bound;
        return;
      }
      replay_first();
    }
    result_.proven = best_ != nullptr;
    result_.bound = best_value();
  }

  bool out_of_effort(std::int64_t allowance) const {
    return problem_.effort > 0 && result_.work >= problem_.effort + allowance;
  }

  /// Takes apart the first nodes of the queue, those that could still matter.
  void expand() {
    std::vector<std::size_t> some;
    while (!queue_.empty() && !queue_.top().leaf && some.size() < kNodesAtOnce &&
           queue_.top().value < best_value()) {
      some.push_back(queue_.top().id);
      queue_.pop();
    }
    expand(some);
  }

  void expand(const std::vector<std::size_t>& some) {
    std::vector<Expanded> expanded(some.size());
    for_each_in_parallel(workers_.size(), static_cast<int>(workers_.size()), [&](std::size_t t) {
      for (std::size_t i = t; i < some.size(); i += workers_.size()) {
        expanded[i] = leaves_of(nodes_[some[i]], *workers_[t]);
      }
    });
    for (Expanded& each : expanded) {
      if (each.smallest && (!smallest_ || each.smallest->memory < smallest_->memory)) {
        smallest_ = std::move(each.smallest);
      }
      result_.leaves += each.leaves;
      result_.fitting += std::ssize(each.plans);
      for (const auto& [reason, count] : each.left_out) {
        result_.left_out[reason] += count;
      }
      for (JobPlan& plan : each.plans) {
        queue_.push({objective_value(problem_, plan), true, leaves_.size()});
        leaves_.push_back(std::move(plan));
      }
      for (JobPlan& plan : each.misses) {
        result_.misses.push_back(std::move(plan));
      }
    }
  }

  Expanded leaves_of(const Job& node, Worker& worker) const {
    Expanded result;
    const Job whole = with_model(problem_.base, node);
    const std::string key = fmt::format("{} {} {} {} {} {} {} {}", node.tp, node.cp, node.ep,
                                        expert_tp(node), node.micro_batch, node.sequence_parallel,
                                        static_cast<int>(node.recompute), node.pp > 1);
    auto found = worker.memory.find(key);
    if (found == worker.memory.end()) {
      found = worker.memory.emplace(key, model_memory(whole)).first;
    }
    for (Job& leaf : job_leaves(whole, problem_.axes, problem_.limits, result.left_out)) {
      ++result.leaves;
      JobPlan plan;
      plan.memory = peak_memory(memory_by_stage(leaf, found->second));
      const double need = plan.memory / problem_.memory_limit;
      if (need > 1) {
        ++result.left_out[fmt::format("more memory than {}", to_text(problem_.memory_limit))];
      }
      if (need <= kNearMiss) {
        plan.floor = worker.bound.of(leaf);
      }
      leaf.model = {};
      plan.job = std::move(leaf);
      if (!result.smallest || plan.memory < result.smallest->memory) {
        result.smallest = plan;
      }
      if (need > kNearMiss) {
        continue;
      }
      (need > 1 ? result.misses : result.plans).push_back(std::move(plan));
    }
    return result;
  }

  /// Prices leaves, by as many threads as there are; each keeps its price.
  void price(const std::vector<std::size_t>& some) {
    std::vector<std::size_t> open;
    std::ranges::copy_if(some, std::back_inserter(open),
                         [&](std::size_t id) { return !prices_.contains(id); });
    std::vector<PricedStep> steps(open.size());
    for_each_in_parallel(open.size(), static_cast<int>(workers_.size()), [&](std::size_t i) {
      steps[i] = price_(with_model(problem_.base, leaves_[open[i]].job));
    });
    for (std::size_t i = 0; i < open.size(); ++i) {
      prices_.emplace(open[i], steps[i]);
    }
  }

  /// Takes a price that the search, on one thread, would have asked for.
  const JobPlan& take(std::size_t id) {
    JobPlan& plan = leaves_[id];
    plan.priced = true;
    plan.step = prices_.at(id);
    ++result_.replays;
    result_.work += replay_work(plan.job, layers_);
    progress_(result_.work);
    taken_.push_back(id);
    return plan;
  }

  /// Replays the first leaf, and beside it those behind it, in case they are needed next.
  void replay_first() {
    std::vector<std::size_t> some;
    std::vector<Waiting> ahead;
    while (!queue_.empty() && queue_.top().leaf && some.size() < workers_.size()) {
      ahead.push_back(queue_.top());
      some.push_back(queue_.top().id);
      queue_.pop();
    }
    price(some);
    for (std::size_t i = 1; i < ahead.size(); ++i) {
      queue_.push(ahead[i]);
    }
    const JobPlan& plan = take(some.front());
    if (best_ == nullptr || objective_value(problem_, plan) < objective_value(problem_, *best_)) {
      best_copy_ = plan;
      best_ = &best_copy_;
    }
  }

  /// Goes on through the queue for plans that need less memory, and for one of another shape.
  void find_front() {
    if (best_ == nullptr) {
      return;
    }
    double least = static_cast<double>(best_->memory.count());
    bool other = std::ranges::any_of(
        taken_, [&](std::size_t id) { return shape_of(leaves_[id].job) != shape_of(best_->job); });
    const std::int64_t allowance = problem_.effort / 2;
    const std::int64_t most_leaves = result_.leaves + kFrontLeaves;
    for (std::int64_t replays = 0; replays < kFrontReplays && !queue_.empty();) {
      if (out_of_effort(allowance) || result_.leaves > most_leaves) {
        break;
      }
      if (!queue_.top().leaf) {
        std::vector<std::size_t> some;
        while (!queue_.empty() && !queue_.top().leaf && some.size() < kNodesAtOnce) {
          some.push_back(queue_.top().id);
          queue_.pop();
        }
        expand(some);
        continue;
      }
      const std::size_t id = queue_.top().id;
      queue_.pop();
      const JobPlan& leaf = leaves_[id];
      const auto memory = static_cast<double>(leaf.memory.count());
      const bool differs = !other && shape_of(leaf.job) != shape_of(best_->job);
      if (memory < kLessMemory * least || differs) {
        price({id});
        take(id);
        ++replays;
        other = other || differs;
        least = std::min(least, memory);
      } else {
        rest_.push_back(id);
      }
    }
  }

  void take_rest() {
    for (const std::size_t id : taken_) {
      result_.plans.push_back(leaves_[id]);
    }
    const auto better = [&](const JobPlan& a, const JobPlan& b) {
      return objective_value(problem_, a) < objective_value(problem_, b);
    };
    std::ranges::stable_sort(result_.plans, better);
    std::vector<const JobPlan*> by_time;
    for (const JobPlan& plan : result_.plans) {
      by_time.push_back(&plan);
    }
    std::ranges::stable_sort(by_time, {}, [](const JobPlan* plan) {
      return std::pair(plan->step.step_s, plan->memory);
    });
    for (const JobPlan* plan : by_time) {
      if (result_.front.empty() || plan->memory < result_.front.back().memory) {
        result_.front.push_back(*plan);
      }
    }
    for (; !queue_.empty(); queue_.pop()) {
      if (queue_.top().leaf) {
        rest_.push_back(queue_.top().id);
      }
    }
    for (const std::size_t id : rest_) {
      result_.next.push_back(leaves_[id]);
    }
    for (std::vector<JobPlan>* list : {&result_.next, &result_.misses}) {
      std::ranges::stable_sort(*list, better);
      list->resize(std::min(list->size(), kKept));
    }
  }

  [[noreturn]] void nothing_fits() const {
    std::vector<std::pair<std::int64_t, std::string>> reasons;
    for (const auto& [reason, count] : result_.left_out) {
      reasons.emplace_back(-count, reason);
    }
    std::ranges::sort(reasons);
    Error error(
        fmt::format("no plan is left of {} cuts and {} plans", result_.nodes, result_.leaves));
    for (std::size_t i = 0; i < std::min<std::size_t>(reasons.size(), 4); ++i) {
      error.add_context(fmt::format("{} left out: {}", -reasons[i].first, reasons[i].second));
    }
    if (smallest_) {
      error.add_context(fmt::format("the least memory is {}, with {}", to_text(smallest_->memory),
                                    plan_text(smallest_->job)));
    }
    throw error;
  }

  const JobProblem& problem_;
  const PriceJob& price_;
  const std::function<void(std::int64_t)>& progress_;
  std::int64_t layers_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Job> nodes_;
  std::vector<JobPlan> leaves_;
  Queue queue_;
  std::map<std::size_t, PricedStep> prices_;  ///< of leaves
  std::vector<std::size_t> taken_, rest_;
  std::optional<JobPlan> smallest_;
  JobPlan best_copy_;
  const JobPlan* best_ = nullptr;
  JobSearchResult result_;
};

}  // namespace

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

std::int64_t replay_work(const Job& job, std::int64_t layers) {
  return 2 * job.microbatches() * (layers + 2) + 4 * job.gpus;
}

JobSearchResult search_jobs(const JobProblem& problem, const PriceJob& price,
                            const std::function<void(std::int64_t)>& progress) {
  return Search(problem, price, progress).run();
}

}  // namespace lockstep
