#include "planner/job/mixed_search.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "base/parallel.h"
#include "base/stop_signal.h"
#include "planner/job/mixed_bound.h"
#include "planner/job/mixed_leaves.h"

namespace lockstep {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();

/// What is known of something in the queue: nothing but its node, its fit, or its closed form.
enum class Known : std::uint8_t { kNode, kFit, kFloor };

struct Waiting {
  double value = 0;
  Known known = Known::kNode;
  std::size_t id = 0;  ///< of a node, else of a leaf
  friend bool operator>(const Waiting& a, const Waiting& b) {
    return std::tie(a.value, a.known, a.id) > std::tie(b.value, b.known, b.id);
  }
};
using Queue = std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>>;

class Search {
 public:
  Search(const MixedProblem& problem, const PriceMixed& price,
         const std::function<void(std::int64_t)>& progress)
      : problem_(problem),
        price_(price),
        progress_(progress),
        bound_(*problem.topology, problem.pools, problem.operator_times()),
        space_(problem, bound_) {}

  MixedSearchResult run() {
    for (std::size_t node = 0; node < space_.nodes(); ++node) {
      queue_.push({space_.least_value(node), Known::kNode, node});
    }
    find_best();
    if (space_.size() == 0) {
      space_.nothing_fits();
    }
    try {
      find_families();
    } catch (const Interrupted&) {
      // What is found by now is the result.
    }
    take_rest();
    return std::move(result_);
  }

 private:
  MixedPlan plan_of(std::size_t id) const {
    MixedPlan plan = space_.plan(id);
    plan.floor = floors_[id];
    return plan;
  }

  /// Of what is known of a leaf.
  double value_of(std::size_t id) const {
    if (problem_.objective == PlanObjective::kTime) {
      return floors_[id].step_s;
    }
    return objective_value(problem_, plan_of(id));
  }

  double best_value() const { return best_ ? objective_value(problem_, *best_) : kFar; }

  void find_best() {
    double bound = 0;
    const auto end_here = [&] { result_.bound = std::min(bound, too_large_bound_); };
    while (!queue_.empty()) {
      const Waiting first = queue_.top();
      bound = std::max(bound, first.value);
      if (first.value >= best_value()) {
        break;
      }
      try {
        if (stop_here()) {
          return end_here();
        }
        if (first.known != Known::kFloor) {
          queue_.pop();
          learn(first, queue_);
          continue;
        }
        if (out_of_effort(best_ ? 1 : 2)) {
          return end_here();
        }
        replay_first();
      } catch (const Interrupted&) {
        if (floored_ == 0) {
          throw;
        }
        result_.stopped = true;
        return end_here();
      }
    }
    result_.proven = best_.has_value() && best_value() <= too_large_bound_;
    result_.bound = std::min(best_value(), too_large_bound_);
  }

  bool stop_here() {
    result_.stopped = result_.stopped || (problem_.stop && floored_ > 0 && problem_.stop());
    return result_.stopped;
  }

  /// What comes of a node or of a leaf without its closed form.
  void learn(const Waiting& what, Queue& queue) {
    if (what.known == Known::kNode) {
      for (const std::size_t id : space_.expand(what.id)) {
        floors_.resize(space_.size());
        floors_[id].step_s = space_.busy_s(id);
        queue.push({value_of(id), Known::kFit, id});
      }
      return;
    }
    floors_[what.id] = bound_.of(with_model(problem_.base, space_.plan(what.id).job));
    ++floored_;
    queue.push({value_of(what.id), Known::kFloor, what.id});
  }

  /// Replays the first leaf, and beside it those behind it, in case they are needed next.
  void replay_first() {
    std::vector<Waiting> ahead;
    std::vector<std::size_t> open;
    while (!queue_.empty() && queue_.top().known == Known::kFloor &&
           std::ssize(ahead) < std::max(1, problem_.threads)) {
      ahead.push_back(queue_.top());
      queue_.pop();
      if (!prices_.contains(ahead.back().id)) {
        open.push_back(ahead.back().id);
      }
    }
    for (const Waiting& each : ahead) {
      queue_.push(each);  // so that they are there where the replays are interrupted
    }
    price(open);
    queue_.pop();
    const std::size_t id = ahead.front().id;
    const bool refused = !prices_.at(id).step;
    if (refused && stop_here()) {
      queue_.push(ahead.front());
      return;
    }
    if (refused && problem_.simplify && !taken_any_ && problem_.simplify()) {
      prices_.clear();
      queue_.push(ahead.front());
      return;
    }
    taken_any_ = true;
    take(id);
  }

  void price(const std::vector<std::size_t>& open) {
    std::vector<Price> prices(open.size(), Price(0));
    for_each_in_parallel(open.size(), problem_.threads, [&](std::size_t i) {
      prices[i] = price_(with_model(problem_.base, space_.plan(open[i]).job));
    });
    for (std::size_t i = 0; i < open.size(); ++i) {
      prices_.emplace(open[i], prices[i]);
    }
  }

  void take(std::size_t id) {
    MixedPlan plan = plan_of(id);
    const Price& price = prices_.at(id);
    result_.work += price.work;
    progress_(result_.work);
    if (!price.step) {
      ++result_.too_large;
      too_large_bound_ = std::min(too_large_bound_, objective_value(problem_, plan));
      return;
    }
    plan.priced = true;
    plan.step = *price.step;
    ++result_.replays;
    if (objective_value(problem_, plan) < best_value()) {
      best_ = plan;
    }
    result_.plans.push_back(std::move(plan));
  }

  bool out_of_effort(std::int64_t times) const {
    return problem_.effort > 0 && result_.work >= times * problem_.effort;
  }

  /// Replays the best of each family that has none yet.
  void find_families() {
    std::set<std::string> known;
    for (const MixedPlan& plan : result_.plans) {
      known.insert(plan.family);
    }
    std::map<std::string, Queue> queues;
    for (; !queue_.empty(); queue_.pop()) {
      const std::size_t id = queue_.top().id;
      const std::string& family =
          queue_.top().known == Known::kNode ? space_.node_family(id) : space_.family(id);
      if (!known.contains(family)) {
        queues[family].push(queue_.top());
      }
    }
    for (auto& [family, queue] : queues) {
      while (!queue.empty() && queue.top().known != Known::kFloor && !stop_here()) {
        const Waiting first = queue.top();
        queue.pop();
        learn(first, queue);
      }
      if (!queue.empty() && queue.top().known == Known::kFloor && !stop_here() &&
          !out_of_effort(2)) {
        const std::size_t id = queue.top().id;
        price({id});
        if (prices_.at(id).step || !stop_here()) {
          take(id);
        }
      }
    }
  }

  void take_rest() {
    result_.cuts = space_.cuts();
    result_.divisions = space_.division_count();
    result_.leaves = static_cast<std::int64_t>(space_.size());
    result_.left_out = space_.left_out();
    const auto better = [&](const MixedPlan& a, const MixedPlan& b) {
      return objective_value(problem_, a) < objective_value(problem_, b);
    };
    if (result_.plans.empty()) {
      std::size_t least = 0;
      for (std::size_t id = 1; id < floors_.size(); ++id) {
        least = value_of(id) < value_of(least) ? id : least;
      }
      result_.plans.push_back(plan_of(least));
    }
    std::ranges::stable_sort(result_.plans, better);
    std::vector<const MixedPlan*> by_time;
    std::set<std::string> families;
    for (const MixedPlan& plan : result_.plans) {
      by_time.push_back(&plan);
      if (families.insert(plan.family).second) {
        result_.families.push_back(plan);
      }
    }
    std::ranges::stable_sort(
        by_time, {}, [](const MixedPlan* plan) { return std::pair(plan->step_s(), plan->memory); });
    for (const MixedPlan* plan : by_time) {
      if (result_.front.empty() || plan->memory < result_.front.back().memory) {
        result_.front.push_back(*plan);
      }
    }
  }

  const MixedProblem& problem_;
  const PriceMixed& price_;
  const std::function<void(std::int64_t)>& progress_;
  MixedBound bound_;
  MixedLeaves space_;
  std::vector<StepFloor> floors_;  ///< by leaf: what is known
  Queue queue_;
  bool taken_any_ = false;
  std::map<std::size_t, Price> prices_;
  double too_large_bound_ = kFar;
  std::int64_t floored_ = 0;
  std::optional<MixedPlan> best_;
  MixedSearchResult result_;
};

}  // namespace

MixedSearchResult search_mixed(const MixedProblem& problem, const PriceMixed& price,
                               const std::function<void(std::int64_t)>& progress) {
  return Search(problem, price, progress).run();
}

}  // namespace lockstep
