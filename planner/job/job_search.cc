#include "planner/job/job_search.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/parallel.h"
#include "base/stop_signal.h"
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
constexpr double kFrontSlower = 1.5;  ///< than the best; beyond, the front has no use for it
constexpr double kPromising = 1.1;  ///< of the least floor: among those the first replay is chosen
constexpr std::int64_t kShare = 2;  ///< part of the effort that a replay has, beside a best
constexpr int kPromisingTries = 8;
constexpr std::size_t kAhead = 8;    ///< leaves that are measured against the same best
constexpr double kShortest = 1e-12;  ///< limit of a step, also where the best's energy leaves none
constexpr double kForEver = std::numeric_limits<double>::infinity();

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

/// Leaves of one place need replays of more operations the larger each of their sizes is.
std::string place_of(const Job& job) {
  return fmt::format("{} {} {} {} {} {} {} {} {}", job.gpus, job.tp, job.cp, job.pp, job.ep,
                     expert_tp(job), job.micro_batch, job.rank_order,
                     static_cast<int>(job.context_comm));
}
std::array<int, 3> size_of(const Job& job) {
  return {static_cast<int>(job.vpp), static_cast<int>(job.sharding),
          static_cast<int>(job.recompute)};
}

auto shape_of(const Job& job) { return std::tie(job.gpus, job.tp, job.cp, job.pp, job.ep); }

class Search {
 public:
  Search(const JobProblem& problem, const PriceJob& price,
         const std::function<void(std::int64_t)>& progress)
      : problem_(problem), price_(price), progress_(progress) {
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
    try {
      find_front();
    } catch (const Interrupted&) {
      // What is found by now is the result.
    }
    take_rest();
    return std::move(result_);
  }

 private:
  double best_value() const {
    return best_ == nullptr ? kForEver : objective_value(problem_, *best_);
  }

  /// Of a replay that may stop at a step of `enough_s`. One may take all of the effort, and beside
  /// a best a share of it.
  PriceLimits limits(double enough_s) const {
    const std::int64_t effort = problem_.effort;
    const std::int64_t share = std::max<std::int64_t>(1, effort / kShare);
    return {enough_s, effort > 0 && best_ != nullptr ? share : effort};
  }

  /// Until it is slower than the best; where it needs less memory, until the front has no use for
  /// it.
  PriceLimits limits_of(const JobPlan& plan) const {
    double enough_s = std::max(longest_step_s(problem_, plan, best_value()), kShortest);
    if (best_ != nullptr && saves_memory(plan, best_->memory)) {
      enough_s = std::max(enough_s, kFrontSlower * best_->step.step_s);
    }
    return limits(enough_s);
  }

  static bool saves_memory(const JobPlan& plan, Bytes least) {
    return static_cast<double>(plan.memory.count()) <
           kLessMemory * static_cast<double>(least.count());
  }

  void find_best() {
    double bound = 0;
    while (!queue_.empty()) {
      bound = std::max(bound, queue_.top().value);
      if (queue_.top().value >= best_value()) {
        break;
      }
      try {
        if (!leaves_.empty() && stopped()) {
          result_.bound = std::min(bound, too_large_bound_);
          return;
        }
        if (!queue_.top().leaf) {
          expand();
          continue;
        }
        if (replayed_.contains(queue_.top().id)) {
          queue_.pop();
          continue;
        }
        if (out_of_effort(best_ == nullptr ? problem_.effort : 0)) {
          result_.bound = std::min(bound, too_large_bound_);
          return;
        }
        if (best_ != nullptr || promising_++ >= kPromisingTries || !replay_promising()) {
          replay_first();
        }
      } catch (const Interrupted&) {
        if (leaves_.empty()) {
          throw;
        }
        result_.stopped = true;
        result_.bound = std::min(bound, too_large_bound_);
        return;
      }
    }
    result_.proven = best_ != nullptr && best_value() <= too_large_bound_;
    result_.bound = std::min(best_value(), too_large_bound_);
  }

  bool stopped() {
    result_.stopped = result_.stopped || (problem_.stop && problem_.stop());
    return result_.stopped;
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
    std::vector<Price> prices(open.size(), Price(0));
    for_each_in_parallel(open.size(), static_cast<int>(workers_.size()), [&](std::size_t i) {
      prices[i] = price_(with_model(problem_.base, leaves_[open[i]].job), limits_.at(open[i]));
    });
    for (std::size_t i = 0; i < open.size(); ++i) {
      prices_.emplace(open[i], prices[i]);
    }
  }

  /// Takes a price that the search, on one thread, would have asked for. False: there is none.
  bool take(std::size_t id) {
    JobPlan& plan = leaves_[id];
    const Price& price = prices_.at(id);
    replayed_.insert(id);
    result_.work += price.work;
    progress_(result_.work);
    if (!price.step) {
      if (price.beyond_s > 0) {
        plan.beyond_s = price.beyond_s;
        result_.beaten.push_back(plan);
        return false;
      }
      refused_[place_of(plan.job)].push_back(size_of(plan.job));
      leave(id);
      return false;
    }
    plan.priced = true;
    plan.step = *price.step;
    ++result_.replays;
    taken_.push_back(id);
    return true;
  }

  /// A leaf stays without a price.
  void leave(std::size_t id) {
    ++result_.too_large;
    too_large_bound_ = std::min(too_large_bound_, objective_value(problem_, leaves_[id]));
    rest_.push_back(id);
  }

  /// Whether a leaf of the same cut that is no larger was too large for the replay.
  bool like_refused(const Job& job) const {
    const auto found = refused_.find(place_of(job));
    const std::array<int, 3> size = size_of(job);
    return found != refused_.end() && std::ranges::any_of(found->second, [&](const auto& refused) {
             return refused[0] <= size[0] && refused[1] <= size[1] && refused[2] <= size[2];
           });
  }

  /// Replays the leaf that is likely to be the best, of those known that could be. False: there is
  /// none that is not tried.
  bool replay_promising() {
    const double near = kPromising * queue_.top().value;
    std::optional<std::size_t> promising;
    double least = kForEver;
    for (std::size_t id = 0; id < leaves_.size(); ++id) {
      JobPlan plan = leaves_[id];
      if (objective_value(problem_, plan) > near || replayed_.contains(id) ||
          like_refused(plan.job)) {
        continue;
      }
      plan.floor.step_s = plan.floor.unhidden_s;
      if (const double value = objective_value(problem_, plan); value < least) {
        least = value;
        promising = id;
      }
    }
    if (promising) {
      limits_[*promising] = limits(kForEver);
      price({*promising});
      take_best(*promising);
    }
    return promising.has_value();
  }

  /// Replays the first leaf, and beside it those behind it, in case they are needed next.
  void replay_first() {
    const std::size_t first = queue_.top().id;
    if (like_refused(leaves_[first].job)) {
      queue_.pop();
      leave(first);
      return;
    }
    std::vector<std::size_t> some;
    std::vector<Waiting> ahead;
    while (!queue_.empty() && queue_.top().leaf && some.size() < kAhead) {
      ahead.push_back(queue_.top());
      queue_.pop();
      const std::size_t id = ahead.back().id;
      if (!like_refused(leaves_[id].job) && !replayed_.contains(id)) {
        some.push_back(id);
        // Whatever the number of threads, the best is that of when it came among the first.
        limits_.try_emplace(id, limits_of(leaves_[id]));
      }
    }
    for (const Waiting& each : ahead) {
      queue_.push(each);  // so that they are there where the replays are interrupted
    }
    some.resize(std::min(some.size(), workers_.size()));
    price(some);
    take_best(first);
  }

  /// Takes the price of a leaf, which may be the best then. One that is too large is not taken
  /// where the search is to end, or simpler prices are to be tried first: it is asked for again.
  void take_best(std::size_t id) {
    const Price& price = prices_.at(id);
    const bool refused = !price.step && price.beyond_s == 0;
    if (refused && stopped()) {
      return;
    }
    if (refused && taken_.empty() && !simplified_ && problem_.simplify) {
      simplified_ = true;
      if (problem_.simplify()) {
        prices_.clear();
        promising_ = 0;
        return;
      }
    }
    if (!take(id)) {
      return;
    }
    const JobPlan& plan = leaves_[id];
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
    Bytes least = best_->memory;
    bool other = std::ranges::any_of(
        taken_, [&](std::size_t id) { return shape_of(leaves_[id].job) != shape_of(best_->job); });
    const std::int64_t allowance = problem_.effort / 2;
    const std::int64_t most_leaves = result_.leaves + kFrontLeaves;
    for (std::int64_t replays = 0; replays < kFrontReplays && !queue_.empty();) {
      if (out_of_effort(allowance) || result_.leaves > most_leaves || stopped()) {
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
      if (replayed_.contains(id)) {
        continue;
      }
      const JobPlan& leaf = leaves_[id];
      const bool differs = !other && shape_of(leaf.job) != shape_of(best_->job);
      if ((saves_memory(leaf, least) || differs) && !like_refused(leaf.job)) {
        limits_[id] = limits(kFrontSlower * best_->step.step_s);
        if (const auto known = prices_.find(id);
            known != prices_.end() && known->second.beyond_s > 0) {
          prices_.erase(known);  // given up at the best, by a thread that had nothing else to do
        }
        price({id});
        if (!prices_.at(id).step && stopped()) {
          rest_.push_back(id);
          break;
        }
        ++replays;
        if (!take(id)) {
          if (leaves_[id].beyond_s == 0 && prices_.at(id).work > 0) {
            break;  // it took its share of the effort in vain: others like it would, too
          }
          continue;
        }
        other = other || differs;
        least = std::min(least, leaf.memory);
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
      if (queue_.top().leaf && !replayed_.contains(queue_.top().id)) {
        rest_.push_back(queue_.top().id);
      }
    }
    for (const std::size_t id : rest_) {
      result_.next.push_back(leaves_[id]);
    }
    if (result_.plans.empty() && !result_.next.empty()) {
      result_.plans.push_back(*std::ranges::min_element(result_.next, better));
      result_.front = result_.plans;
    }
    std::ranges::stable_sort(result_.beaten, better);
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
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Job> nodes_;
  std::vector<JobPlan> leaves_;
  Queue queue_;
  std::map<std::size_t, Price> prices_;        ///< of leaves
  std::map<std::size_t, PriceLimits> limits_;  ///< of their replays
  std::set<std::size_t> replayed_;             ///< leaves of which the price is taken
  /// What was too large: by cut, each chunks, sharding and recomputation.
  std::map<std::string, std::vector<std::array<int, 3>>> refused_;
  double too_large_bound_ = std::numeric_limits<double>::infinity();
  int promising_ = 0;  ///< tried
  bool simplified_ = false;
  std::vector<std::size_t> taken_, rest_;
  std::optional<JobPlan> smallest_;
  JobPlan best_copy_;
  const JobPlan* best_ = nullptr;
  JobSearchResult result_;
};

}  // namespace

JobSearchResult search_jobs(const JobProblem& problem, const PriceJob& price,
                            const std::function<void(std::int64_t)>& progress) {
  return Search(problem, price, progress).run();
}

}  // namespace lockstep
