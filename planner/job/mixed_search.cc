#include "planner/job/mixed_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/parallel.h"
#include "base/stop_signal.h"
#include "generator/exact/memory.h"
#include "generator/exact/rank_sizes.h"
#include "generator/exact/stage_plan.h"
#include "planner/job/mixed_bound.h"

namespace lockstep {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();
constexpr std::array<double, 4> kSlacks = {0, 0.05, 0.12, 0.25};
/// For what sums in another order.
constexpr double kSlack = 1 - 1e-9;

/// A split of a pipeline's layers that fits its GPUs.
struct Fit {
  std::vector<std::int64_t> layers;
  std::vector<double> stage_s;
  double slowest_s = 0, sum_s = 0;
};

/// Some pipelines of a leaf.
struct LeafKind {
  std::size_t form = 0;
  std::int64_t pipelines = 0, microbatches = 0;
  const Fit* fit = nullptr;
};

struct Leaf {
  std::size_t cut = 0;
  const Division* division = nullptr;
  std::vector<LeafKind> kinds;
  bool stage_by_stage = false;
  StepFloor floor;
};

struct Waiting {
  double value = 0;
  bool floored = false;
  std::size_t id = 0;
  friend bool operator>(const Waiting& a, const Waiting& b) {
    return std::tie(a.value, a.floored, a.id) > std::tie(b.value, b.floored, b.id);
  }
};
using Queue = std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>>;

template <class T>
std::vector<T> or_free(const std::vector<T>& pinned, std::vector<T> free) {
  return pinned.empty() ? std::move(free) : pinned;
}

/// Where a pipeline's first m microbatches cannot have ended: on each stage, after all its passes
/// and, of the first and the last microbatch, those of the stages before.
double busy_s(const Fit& fit, std::int64_t microbatches) {
  double before = 0, most = fit.sum_s;
  for (const double stage : fit.stage_s) {
    most = std::max(most, before + static_cast<double>(microbatches) * stage);
    before += stage;
  }
  return most * kSlack;
}

double end_s(const Fit& fit, std::int64_t microbatches) {
  return fit.sum_s + static_cast<double>(microbatches - 1) * fit.slowest_s;
}

class Search {
 public:
  Search(const MixedProblem& problem, const PriceMixed& price,
         const std::function<void(std::int64_t)>& progress)
      : problem_(problem),
        price_(price),
        progress_(progress),
        bound_(*problem.topology, problem.pools, problem.operator_times()),
        layers_(layer_count(problem.base.model)) {
    for (const Module& module : problem.base.model.after) {
      tied_ = tied_ || module.shared;
    }
  }

  MixedSearchResult run() {
    make_leaves();
    result_.leaves = std::ssize(leaves_);
    if (leaves_.empty()) {
      nothing_fits();
    }
    find_best();
    try {
      find_families();
    } catch (const Interrupted&) {
      // What is found by now is the result.
    }
    take_rest();
    return std::move(result_);
  }

 private:
  // The space.

  void make_leaves() {
    std::int64_t most_tp = 1;
    for (const GpuPool& pool : problem_.pools) {
      for (const std::vector<std::int32_t>& server : pool.servers) {
        most_tp = std::max<std::int64_t>(most_tp, std::ssize(server));
      }
    }
    std::vector<std::int64_t> tps;
    for (std::int64_t tp = 1; tp <= most_tp; tp *= 2) {
      tps.push_back(tp);
    }
    for (const std::int64_t tp : or_free(problem_.axes.tp, tps)) {
      std::vector<std::int64_t> slots;
      for (const GpuPool& pool : problem_.pools) {
        slots.push_back(std::ssize(pool.slots(tp)));
      }
      divisions_.push_back(std::make_unique<std::vector<Division>>(divisions(slots, layers_)));
      result_.divisions += std::ssize(*divisions_.back());
      if (divisions_.back()->empty()) {
        ++result_.left_out[fmt::format("no server has tp {} GPUs of a type", tp)];
      }
      for (const Job& cut : cuts_of(tp)) {
        cuts_.push_back(cut);
        for (const Division& division : *divisions_.back()) {
          add_leaves(division);
        }
      }
    }
    result_.cuts = std::ssize(cuts_);
  }

  /// What all pipelines have in common: jobs of one pipeline of one stage.
  std::vector<Job> cuts_of(std::int64_t tp) {
    const PlanAxes& axes = problem_.axes;
    std::vector<Job> cuts;
    std::vector<Recompute> recompute = {Recompute::kNone, Recompute::kFull};
    if (!problem_.base.flash_attention) {
      recompute.insert(recompute.begin() + 1, Recompute::kSelective);
    }
    for (const std::int64_t micro_batch : or_free(axes.micro_batch, {1, 2, 4, 8})) {
      for (const bool sequence :
           or_free(axes.sequence_parallel,
                   tp == 1 ? std::vector<bool>{false} : std::vector<bool>{false, true})) {
        for (const Recompute each : or_free(axes.recompute, recompute)) {
          for (const Sharding sharding :
               or_free(axes.sharding, {Sharding::kNone, Sharding::kZero1})) {
            Job cut = problem_.base;
            cut.gpus = cut.tp = tp;
            cut.cp = cut.ep = cut.pp = cut.vpp = cut.hsdp_replicas = 1;
            cut.expert_tp = 0;
            cut.schedule = "1f1b";
            cut.rank_order = "tp-cp-ep-dp-pp";
            cut.stage_layers.clear();
            cut.first_stage_layers = cut.last_stage_layers = 0;
            cut.micro_batch = micro_batch;
            cut.sequence_parallel = sequence;
            cut.recompute = each;
            cut.sharding = sharding;
            if (allowed(with_model(problem_.base, cut))) {
              cut.model = {};
              cuts.push_back(std::move(cut));
            }
          }
        }
      }
    }
    return cuts;
  }

  bool allowed(Job cut) {
    try {
      for (const GpuPool& pool : problem_.pools) {
        cut.gpu_type = pool.type;
        check_job(cut);
      }
      return true;
    } catch (const Error& error) {
      const std::string_view text = error.what();
      ++result_.left_out[std::string(text.substr(0, text.find('\n')))];
      return false;
    }
  }

  void add_leaves(const Division& division) {
    const Job& cut = cuts_.back();
    const std::int64_t microbatches = problem_.base.global_batch / cut.micro_batch;
    std::vector<std::int64_t> pipelines;
    bool one_stage = false, several = false;
    for (const PipelineForm& form : division) {
      const auto depth = std::ssize(form.types);
      if (!problem_.axes.pp.empty() && std::ranges::count(problem_.axes.pp, depth) == 0) {
        ++result_.left_out["pipelines of another number of stages than --pp"];
        return;
      }
      (depth == 1 ? one_stage : several) = true;
      pipelines.push_back(form.pipelines);
    }
    if (tied_ && one_stage && several) {
      ++result_.left_out["tied embeddings, and pipelines of one stage beside others"];
      return;
    }
    std::int64_t copies = 0;
    for (const std::int64_t each : pipelines) {
      copies += each;
    }
    if (copies > microbatches) {
      ++result_.left_out["fewer microbatches than pipelines"];
      return;
    }
    std::vector<const std::vector<Fit>*> fits;
    std::vector<double> slowest, sum;
    for (const PipelineForm& form : division) {
      fits.push_back(&fits_of(form.types, copies));
      if (fits.back()->empty()) {
        ++result_.left_out["more memory than the GPUs have"];
        return;
      }
      slowest.push_back(fits.back()->front().slowest_s);
      sum.push_back(fits.back()->front().sum_s);
    }
    Leaf leaf;
    leaf.cut = cuts_.size() - 1;
    leaf.division = &division;
    const std::vector<Share> shares = share_out(pipelines, slowest, sum, microbatches);
    double busy = 0;
    for (std::size_t f = 0; f < shares.size(); ++f) {
      for (const auto& [some, each] : shares[f]) {
        const Fit& fit = *std::ranges::min_element(
            *fits[f], {}, [m = each](const Fit& candidate) { return end_s(candidate, m); });
        leaf.kinds.push_back({f, some, each, &fit});
        busy = std::max(busy, busy_s(fit, each));
      }
    }
    if (leaf.kinds.empty()) {
      ++result_.left_out["fewer microbatches than pipelines"];
      return;
    }
    leaf.floor.step_s = busy;
    add_leaf(leaf);
    if (several && copies > 1) {
      const auto pipeline_by_pipeline = placed(leaf);
      leaf.stage_by_stage = true;
      if (placed(leaf) != pipeline_by_pipeline) {
        add_leaf(std::move(leaf));
      }
    }
  }

  void add_leaf(Leaf leaf) {
    leaves_.push_back(std::move(leaf));
    queue_.push({value_of(leaves_.size() - 1), false, leaves_.size() - 1});
  }

  /// The splits of a pipeline over stages of these types, the one with the fastest slowest stage
  /// first; none where it does not fit.
  const std::vector<Fit>& fits_of(const std::vector<std::size_t>& types, std::int64_t copies) {
    const Job& cut = cuts_.back();
    const std::int64_t shards = cut.sharding == Sharding::kNone ? 1 : copies;
    const auto [found, is_new] = fits_.try_emplace({cuts_.size() - 1, shards, types});
    if (!is_new) {
      return found->second;
    }
    Job job = with_model(problem_.base, cut);
    job.pp = std::ssize(types);
    job.gpus = job.tp * job.pp * copies;
    job.global_batch = job.pp * job.micro_batch * copies;  // all that 1F1B has in flight
    SplitProblem split = split_problem(types, job);
    const ModelMemory memory = model_memory(job);
    if (problem_.axes.even_stages) {
      std::vector<std::int64_t> layers;
      for (const std::vector<ModelChunk>& stage : stages_of(job)) {
        layers.push_back(stage.front().layers);
      }
      if (shorten(split, layers, job, memory)) {
        found->second.push_back(fit_of(split, layers));
      }
      return found->second;
    }
    for (const double slack : kSlacks) {
      for (;;) {
        const double most = least_slowest_s(split);
        if (most == kFar) {
          return found->second;
        }
        const std::vector<std::int64_t> layers =
            split_within(split, most * (1 + slack) * (1 + 1e-12));
        if (shorten(split, layers, job, memory)) {
          const bool known = std::ranges::any_of(
              found->second, [&](const Fit& fit) { return fit.layers == layers; });
          if (!known) {
            found->second.push_back(fit_of(split, layers));
          }
          break;
        }
      }
    }
    return found->second;
  }

  SplitProblem split_problem(const std::vector<std::size_t>& types, const Job& job) {
    SplitProblem split;
    split.types = types;
    split.most_layers.assign(types.size(), layers_);
    split.layer_s.resize(problem_.pools.size());
    split.before_s.resize(problem_.pools.size());
    split.after_s.resize(problem_.pools.size());
    for (const std::size_t type : std::set(types.begin(), types.end())) {
      const ModelTimes& times = bound_.units(type, job);
      const auto both = [](const UnitTimes& unit) { return unit.forward + unit.backward; };
      for (const UnitTimes* unit : times.units({0, layers_, false, false})) {
        split.layer_s[type].push_back(both(*unit));
      }
      split.before_s[type] = times.before.unit == nullptr ? 0 : both(times.before);
      split.after_s[type] = times.after.unit == nullptr ? 0 : both(times.after);
    }
    // best_split() counts layers by the first type's list.
    for (std::vector<double>& list : split.layer_s) {
      list.resize(static_cast<std::size_t>(layers_));
    }
    return split;
  }

  static Fit fit_of(const SplitProblem& split, const std::vector<std::int64_t>& layers) {
    Fit fit;
    fit.layers = layers;
    fit.stage_s = stage_times(split, layers);
    for (const double stage : fit.stage_s) {
      fit.slowest_s = std::max(fit.slowest_s, stage);
      fit.sum_s += stage;
    }
    return fit;
  }

  /// Whether all stages fit; else those that do not may hold fewer layers from now on.
  bool shorten(SplitProblem& split, const std::vector<std::int64_t>& layers, Job& job,
               const ModelMemory& memory) const {
    job.stage_layers = layers;
    const std::vector<StageMemory> stages = memory_by_stage(job, memory);
    bool fits = true;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const Bytes limit = problem_.pools[split.types[s]].memory;
      const Bytes need = stages[s].total();
      if (need > limit) {
        fits = false;
        const auto share =
            static_cast<std::int64_t>(static_cast<double>(layers[s]) * (limit / need));
        split.most_layers[s] = std::min(share, layers[s] - 1);
      }
    }
    return fits;
  }

  // The search.

  MixedPlan plan_of(std::size_t id) const {
    const Leaf& leaf = leaves_[id];
    MixedPlan plan;
    plan.job.base = cuts_[leaf.cut];
    plan.stage_by_stage = leaf.stage_by_stage;
    plan.family = family_of(*leaf.division, problem_.pools);
    for (const GpuPool& pool : problem_.pools) {
      plan.job.gpu_types.push_back(pool.type);
    }
    std::vector<std::vector<std::vector<std::int32_t>>> ranks = placed(leaf);
    std::vector<std::size_t> taken(ranks.size());
    for (const LeafKind& kind : leaf.kinds) {
      PipelineKind& made = plan.job.kinds.emplace_back();
      made.microbatches = kind.microbatches;
      made.layers = kind.fit->layers;
      made.gpu_type = (*leaf.division)[kind.form].types;
      for (std::int64_t i = 0; i < kind.pipelines; ++i) {
        made.first_rank.push_back(ranks[kind.form][taken[kind.form]++]);
      }
    }
    plan.floor = leaf.floor;
    const Job& base = plan.job.base;
    const ModelMemory* units = nullptr;
    for (const PipelineKind& kind : plan.job.kinds) {
      const Job job = with_model(problem_.base, job_of(plan.job, kind));
      const auto [known, is_new] = memory_.try_emplace(
          fmt::format("{} {} {} {} {}", base.tp, base.micro_batch, base.sequence_parallel,
                      static_cast<int>(base.recompute), job.pp > 1));
      if (is_new) {
        known->second = model_memory(job);
      }
      units = &known->second;
      const std::vector<StageMemory> stages = memory_by_stage(job, *units);
      for (std::size_t s = 0; s < stages.size(); ++s) {
        plan.memory = std::max(plan.memory, stages[s].total());
        plan.full =
            std::max(plan.full, stages[s].total() / problem_.pools[kind.gpu_type[s]].memory);
      }
    }
    return plan;
  }

  /// First ranks by form, pipeline and stage.
  std::vector<std::vector<std::vector<std::int32_t>>> placed(const Leaf& leaf) const {
    std::vector<std::vector<std::int32_t>> slots;
    for (const GpuPool& pool : problem_.pools) {
      slots.push_back(pool.slots(cuts_[leaf.cut].tp));
    }
    std::vector<std::size_t> next(slots.size());
    std::vector<std::vector<std::vector<std::int32_t>>> ranks;
    for (const PipelineForm& form : *leaf.division) {
      const auto pipelines = static_cast<std::size_t>(form.pipelines);
      const std::size_t depth = form.types.size();
      auto& own = ranks.emplace_back(pipelines, std::vector<std::int32_t>(depth));
      for (std::size_t i = 0; i < pipelines * depth; ++i) {
        const std::size_t p = leaf.stage_by_stage ? i % pipelines : i / depth;
        const std::size_t s = leaf.stage_by_stage ? i / pipelines : i % depth;
        own[p][s] = slots[form.types[s]][next[form.types[s]]++];
      }
    }
    return ranks;
  }

  /// Of what is known of a leaf.
  double value_of(std::size_t id) const {
    if (problem_.objective == PlanObjective::kTime) {
      return leaves_[id].floor.step_s;
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
        if (!first.floored) {
          queue_.pop();
          take_floor(first.id);
          continue;
        }
        if (problem_.effort > 0 && result_.work >= problem_.effort * (best_ ? 1 : 2)) {
          return end_here();
        }
        replay_first();
      } catch (const Interrupted&) {
        if (!best_) {
          throw;
        }
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

  void take_floor(std::size_t id) {
    Leaf& leaf = leaves_[id];
    const MixedPlan plan = plan_of(id);
    leaf.floor = bound_.of(with_model(problem_.base, plan.job));
    ++floored_;
    queue_.push({value_of(id), true, id});
  }

  /// Replays the first leaf, and beside it those behind it, in case they are needed next.
  void replay_first() {
    std::vector<Waiting> ahead;
    std::vector<std::size_t> open;
    while (!queue_.empty() && queue_.top().floored &&
           std::ssize(ahead) < std::max(1, problem_.threads)) {
      ahead.push_back(queue_.top());
      queue_.pop();
      if (!prices_.contains(ahead.back().id)) {
        open.push_back(ahead.back().id);
      }
    }
    for (std::size_t i = 1; i < ahead.size(); ++i) {
      queue_.push(ahead[i]);
    }
    price(open);
    const std::size_t id = ahead.front().id;
    if (!prices_.at(id) && problem_.simplify && !taken_any_ && problem_.simplify()) {
      prices_.clear();
      queue_.push(ahead.front());
      return;
    }
    taken_any_ = true;
    take(id);
  }

  void price(const std::vector<std::size_t>& open) {
    std::vector<std::optional<PricedStep>> steps(open.size());
    for_each_in_parallel(open.size(), problem_.threads, [&](std::size_t i) {
      MixedJob job;
      {
        const std::lock_guard lock(mutex_);
        job = with_model(problem_.base, plan_of(open[i]).job);
      }
      steps[i] = price_(job);
    });
    for (std::size_t i = 0; i < open.size(); ++i) {
      prices_.emplace(open[i], steps[i]);
    }
  }

  void take(std::size_t id) {
    MixedPlan plan = plan_of(id);
    const std::optional<PricedStep>& step = prices_.at(id);
    if (!step) {
      result_.work += 4 * plan.job.gpus();
      ++result_.too_large;
      too_large_bound_ = std::min(too_large_bound_, objective_value(problem_, plan));
      return;
    }
    plan.priced = true;
    plan.step = *step;
    ++result_.replays;
    result_.work += 4 * plan.job.gpus();
    for (const PipelineKind& kind : plan.job.kinds) {
      result_.work += 2 * kind.microbatches * (layers_ + 2);
    }
    progress_(result_.work);
    if (objective_value(problem_, plan) < best_value()) {
      best_ = plan;
    }
    result_.plans.push_back(std::move(plan));
  }

  /// Replays the best of each family that has none yet.
  void find_families() {
    std::set<std::string> known;
    for (const MixedPlan& plan : result_.plans) {
      known.insert(plan.family);
    }
    std::map<std::string, Queue> queues;
    for (; !queue_.empty(); queue_.pop()) {
      const std::string family = family_of(*leaves_[queue_.top().id].division, problem_.pools);
      if (!known.contains(family)) {
        queues[family].push(queue_.top());
      }
    }
    for (auto& [family, queue] : queues) {
      while (!queue.empty() && !queue.top().floored && !stop_here()) {
        const std::size_t id = queue.top().id;
        queue.pop();
        take_floor(id);
        queue.push(queue_.top());
        queue_.pop();
      }
      if (!queue.empty() && queue.top().floored && !stop_here()) {
        price({queue.top().id});
        take(queue.top().id);
      }
    }
  }

  void take_rest() {
    const auto better = [&](const MixedPlan& a, const MixedPlan& b) {
      return objective_value(problem_, a) < objective_value(problem_, b);
    };
    if (result_.plans.empty()) {
      std::size_t least = 0;
      for (std::size_t id = 1; id < leaves_.size(); ++id) {
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

  [[noreturn]] void nothing_fits() const {
    std::vector<std::pair<std::int64_t, std::string>> reasons;
    for (const auto& [reason, count] : result_.left_out) {
      reasons.emplace_back(-count, reason);
    }
    std::ranges::sort(reasons);
    Error error(fmt::format("no plan is left of {} cuts and {} divisions of the GPUs", cuts_.size(),
                            result_.divisions));
    for (std::size_t i = 0; i < std::min<std::size_t>(reasons.size(), 4); ++i) {
      error.add_context(fmt::format("{} left out: {}", -reasons[i].first, reasons[i].second));
    }
    throw error;
  }

  using FitKey = std::tuple<std::size_t, std::int64_t, std::vector<std::size_t>>;

  const MixedProblem& problem_;
  const PriceMixed& price_;
  const std::function<void(std::int64_t)>& progress_;
  MixedBound bound_;
  std::int64_t layers_;
  bool tied_ = false, taken_any_ = false;
  std::vector<Job> cuts_;
  std::vector<std::unique_ptr<std::vector<Division>>> divisions_;
  std::map<FitKey, std::vector<Fit>> fits_;
  std::vector<Leaf> leaves_;
  Queue queue_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, ModelMemory> memory_;
  std::map<std::size_t, std::optional<PricedStep>> prices_;
  double too_large_bound_ = kFar;
  std::int64_t floored_ = 0;
  std::optional<MixedPlan> best_;
  MixedSearchResult result_;
};

}  // namespace

MixedJob with_model(const Job& base, MixedJob job) {
  job.base = with_model(base, std::move(job.base));
  return job;
}

double objective_value(const MixedProblem& problem, const MixedPlan& plan) {
  if (problem.objective == PlanObjective::kTime) {
    return plan.step_s();
  }
  if (problem.objective == PlanObjective::kMemory) {
    return static_cast<double>(plan.memory.count());
  }
  const double step = plan.step_s();
  double sum = 0;
  for (const PipelineKind& kind : plan.job.kinds) {
    for (const std::size_t type : kind.gpu_type) {
      const auto gpus = static_cast<double>(kind.pipelines() * plan.job.base.tp);
      const GpuRates& rates = problem.rates[type];
      sum += gpus * (problem.objective == PlanObjective::kCost
                         ? step * rates.usd_per_hour / 3600
                         : rates.idle_watts * step + (rates.busy_watts - rates.idle_watts) *
                                                         std::min(plan.floor.compute_s, step));
    }
  }
  return sum;
}

MixedSearchResult search_mixed(const MixedProblem& problem, const PriceMixed& price,
                               const std::function<void(std::int64_t)>& progress) {
  return Search(problem, price, progress).run();
}

std::vector<MixedTipping> mixed_tipping(const MixedProblem& problem,
                                        const MixedSearchResult& result) {
  struct Rate {
    std::string what;
    double Speeds::*speed = nullptr;
    std::size_t pool = 0;
  };
  std::vector<Rate> rates = {{"NVLink bandwidth", &Speeds::nvlink, 0},
                             {"NIC bandwidth", &Speeds::nic, 0},
                             {"latency", &Speeds::latency, 0}};
  for (std::size_t p = 0; p < problem.pools.size(); ++p) {
    rates.push_back({problem.pools[p].type + "'s speed", nullptr, p});
  }
  std::vector<MixedJob> jobs;
  for (const MixedPlan& plan : result.families) {
    jobs.push_back(with_model(problem.base, plan.job));
  }
  const auto values = [&](const Rate& rate, double factor) {
    Speeds speeds;
    std::vector<double> compute(problem.pools.size(), 1);
    (rate.speed == nullptr ? compute[rate.pool] : speeds.*rate.speed) = factor;
    MixedBound bound(*problem.topology, problem.pools, problem.operator_times(), speeds, compute);
    std::vector<double> all;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      MixedPlan plan = result.families[i];
      const double above = plan.step_s() / plan.floor.step_s;
      plan.priced = false;
      plan.floor.step_s = bound.of(jobs[i]).step_s * above;
      all.push_back(objective_value(problem, plan));
    }
    return all;
  };
  std::vector<MixedTipping> points;
  for (const Rate& rate : rates) {
    MixedTipping point{rate.what, 0, {}, {}};
    for (int step = 1; step <= 12 && point.factor == 0; ++step) {
      for (const double factor : {std::exp2(-0.25 * step), std::exp2(0.25 * step)}) {
        const std::vector<double> all = values(rate, factor);
        const auto least = static_cast<std::size_t>(std::ranges::min_element(all) - all.begin());
        if (least != 0 && all[least] < all[0] && point.factor == 0) {
          point.factor = factor;
          point.family = result.families[least].family;
          point.instead = plan_text(result.families[least]);
        }
      }
    }
    points.push_back(std::move(point));
  }
  return points;
}

std::string plan_text(const MixedPlan& plan) {
  const Job& base = plan.job.base;
  std::string text =
      fmt::format("tp {}{}, microbatch {}{}{}", base.tp, base.sequence_parallel ? " sp" : "",
                  base.micro_batch, base.sharding == Sharding::kZero1 ? ", ZeRO-1" : "",
                  base.recompute == Recompute::kFull        ? ", full recomputation"
                  : base.recompute == Recompute::kSelective ? ", selective recomputation"
                                                            : "") +
      (plan.stage_by_stage ? ", placed by stage" : "");
  for (std::size_t k = 0; k < plan.job.kinds.size(); ++k) {
    const PipelineKind& kind = plan.job.kinds[k];
    text += fmt::format("{}{} x ", k == 0 ? ": " : "; ", kind.pipelines());
    for (std::size_t s = 0; s < kind.layers.size();) {
      std::size_t end = s;
      while (end < kind.layers.size() && kind.gpu_type[end] == kind.gpu_type[s]) {
        ++end;
      }
      const std::vector<std::int64_t> some(kind.layers.begin() + static_cast<std::ptrdiff_t>(s),
                                           kind.layers.begin() + static_cast<std::ptrdiff_t>(end));
      text += fmt::format("{}{} {}", s == 0 ? "" : " > ", plan.job.gpu_types[kind.gpu_type[s]],
                          fmt::join(some, "-"));
      s = end;
    }
    text += fmt::format(" of {}", kind.microbatches);
  }
  return text;
}

}  // namespace lockstep
