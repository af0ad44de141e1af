#include "planner/job/mixed_leaves.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "generator/exact/rank_sizes.h"
#include "generator/exact/stage_plan.h"

namespace lockstep {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();
/// How much slower than the least a split's slowest stage may be.
constexpr std::array<double, 4> kSlacks = {0, 0.05, 0.12, 0.25};
/// For what sums in another order.
constexpr double kSlack = 1 - 1e-9;

template <class T>
std::vector<T> or_free(const std::vector<T>& pinned, std::vector<T> free) {
  return pinned.empty() ? std::move(free) : pinned;
}

/// Where a pipeline's first m microbatches cannot have ended: on each stage, after all its passes
/// and, of the first and the last microbatch, those of the stages before.
double busy_until(const PipelineFit& fit, std::int64_t microbatches) {
  double before = 0, most = fit.sum_s;
  for (const double stage : fit.stage_s) {
    most = std::max(most, before + static_cast<double>(microbatches) * stage);
    before += stage;
  }
  return most * kSlack;
}

double end_s(const PipelineFit& fit, std::int64_t microbatches) {
  return fit.sum_s + static_cast<double>(microbatches - 1) * fit.slowest_s;
}

PipelineFit fit_of(const SplitProblem& split, const std::vector<std::int64_t>& layers) {
  PipelineFit fit;
  fit.layers = layers;
  fit.stage_s = stage_times(split, layers);
  for (const double stage : fit.stage_s) {
    fit.slowest_s = std::max(fit.slowest_s, stage);
    fit.sum_s += stage;
  }
  return fit;
}

}  // namespace

MixedLeaves::MixedLeaves(const MixedProblem& problem, MixedBound& bound)
    : problem_(problem), bound_(bound), layers_(layer_count(problem.base.model)) {
  for (const Module& module : problem.base.model.after) {
    tied_ = tied_ || module.shared;
  }
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
    division_count_ += std::ssize(*divisions_.back());
    if (divisions_.back()->empty()) {
      ++left_out_[fmt::format("no server has tp {} GPUs of a type", tp)];
    }
    for (const Job& cut : cuts_of(tp)) {
      cuts_.push_back(cut);
      for (const Division& division : *divisions_.back()) {
        add(division);
      }
    }
  }
}

/// What all pipelines have in common: jobs of one pipeline of one stage.
std::vector<Job> MixedLeaves::cuts_of(std::int64_t tp) {
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

bool MixedLeaves::allowed(Job cut) {
  try {
    for (const GpuPool& pool : problem_.pools) {
      cut.gpu_type = pool.type;
      check_job(cut);
    }
    return true;
  } catch (const Error& error) {
    const std::string_view text = error.what();
    ++left_out_[std::string(text.substr(0, text.find('\n')))];
    return false;
  }
}

void MixedLeaves::add(const Division& division) {
  const Job& cut = cuts_.back();
  const std::int64_t microbatches = problem_.base.global_batch / cut.micro_batch;
  std::vector<std::int64_t> pipelines;
  bool one_stage = false, several = false;
  for (const PipelineForm& form : division) {
    const auto depth = std::ssize(form.types);
    if (!problem_.axes.pp.empty() && std::ranges::count(problem_.axes.pp, depth) == 0) {
      ++left_out_["pipelines of another number of stages than --pp"];
      return;
    }
    (depth == 1 ? one_stage : several) = true;
    pipelines.push_back(form.pipelines);
  }
  if (tied_ && one_stage && several) {
    ++left_out_["tied embeddings, and pipelines of one stage beside others"];
    return;
  }
  std::int64_t copies = 0;
  for (const std::int64_t each : pipelines) {
    copies += each;
  }
  if (copies > microbatches) {
    ++left_out_["fewer microbatches than pipelines"];
    return;
  }
  std::vector<const std::vector<PipelineFit>*> fits;
  std::vector<double> slowest, sum;
  for (const PipelineForm& form : division) {
    fits.push_back(&fits_of(form.types, copies));
    if (fits.back()->empty()) {
      ++left_out_["more memory than the GPUs have"];
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
      const PipelineFit& fit = *std::ranges::min_element(
          *fits[f], {}, [m = each](const PipelineFit& candidate) { return end_s(candidate, m); });
      leaf.kinds.push_back({f, some, each, &fit});
      busy = std::max(busy, busy_until(fit, each));
    }
  }
  if (leaf.kinds.empty()) {
    ++left_out_["fewer microbatches than pipelines"];
    return;
  }
  leaf.busy_s = busy;
  leaves_.push_back(leaf);
  if (several && copies > 1) {
    const auto pipeline_by_pipeline = placed(leaf);
    leaf.stage_by_stage = true;
    if (placed(leaf) != pipeline_by_pipeline) {
      leaves_.push_back(std::move(leaf));
    }
  }
}

/// The splits of a pipeline over stages of these types, the one with the fastest slowest stage
/// first; none where it does not fit.
const std::vector<PipelineFit>& MixedLeaves::fits_of(const std::vector<std::size_t>& types,
                                                     std::int64_t copies) {
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
            found->second, [&](const PipelineFit& fit) { return fit.layers == layers; });
        if (!known) {
          found->second.push_back(fit_of(split, layers));
        }
        break;
      }
    }
  }
  return found->second;
}

SplitProblem MixedLeaves::split_problem(const std::vector<std::size_t>& types, const Job& job) {
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

/// Whether all stages fit; else those that do not may hold fewer layers from now on.
bool MixedLeaves::shorten(SplitProblem& split, const std::vector<std::int64_t>& layers, Job& job,
                          const ModelMemory& memory) const {
  job.stage_layers = layers;
  const std::vector<StageMemory> stages = memory_by_stage(job, memory);
  bool fits = true;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const Bytes limit = problem_.pools[split.types[s]].memory;
    const Bytes need = stages[s].total();
    if (need > limit) {
      fits = false;
      const auto share = static_cast<std::int64_t>(static_cast<double>(layers[s]) * (limit / need));
      split.most_layers[s] = std::min(share, layers[s] - 1);
    }
  }
  return fits;
}

std::string MixedLeaves::family(std::size_t id) const {
  return family_of(*leaves_[id].division, problem_.pools);
}

MixedPlan MixedLeaves::plan(std::size_t id) const {
  const Leaf& leaf = leaves_[id];
  MixedPlan plan;
  plan.job.base = cuts_[leaf.cut];
  plan.stage_by_stage = leaf.stage_by_stage;
  plan.family = family(id);
  for (const GpuPool& pool : problem_.pools) {
    plan.job.gpu_types.push_back(pool.type);
  }
  FirstRanks ranks = placed(leaf);
  std::vector<std::size_t> taken(ranks.size());
  for (const Kind& kind : leaf.kinds) {
    PipelineKind& made = plan.job.kinds.emplace_back();
    made.microbatches = kind.microbatches;
    made.layers = kind.fit->layers;
    made.gpu_type = (*leaf.division)[kind.form].types;
    for (std::int64_t i = 0; i < kind.pipelines; ++i) {
      made.first_rank.push_back(ranks[kind.form][taken[kind.form]++]);
    }
  }
  for (const PipelineKind& kind : plan.job.kinds) {
    const Job job = with_model(problem_.base, job_of(plan.job, kind));
    const std::vector<StageMemory> stages = memory_by_stage(job, memory_of(job));
    for (std::size_t s = 0; s < stages.size(); ++s) {
      plan.memory = std::max(plan.memory, stages[s].total());
      plan.full = std::max(plan.full, stages[s].total() / problem_.pools[kind.gpu_type[s]].memory);
    }
  }
  return plan;
}

/// First ranks by form, pipeline and stage.
MixedLeaves::FirstRanks MixedLeaves::placed(const Leaf& leaf) const {
  std::vector<std::vector<std::int32_t>> slots;
  for (const GpuPool& pool : problem_.pools) {
    slots.push_back(pool.slots(cuts_[leaf.cut].tp));
  }
  std::vector<std::size_t> next(slots.size());
  FirstRanks ranks;
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

/// What a job's units hold, whatever its stages.
const ModelMemory& MixedLeaves::memory_of(const Job& job) const {
  const std::lock_guard lock(mutex_);
  const auto [known, is_new] = memory_.try_emplace(
      fmt::format("{} {} {} {} {}", job.tp, job.micro_batch, job.sequence_parallel,
                  static_cast<int>(job.recompute), job.pp > 1));
  if (is_new) {
    known->second = model_memory(job);
  }
  return known->second;
}

void MixedLeaves::nothing_fits() const {
  std::vector<std::pair<std::int64_t, std::string>> reasons;
  for (const auto& [reason, count] : left_out_) {
    reasons.emplace_back(-count, reason);
  }
  std::ranges::sort(reasons);
  Error error(fmt::format("no plan is left of {} cuts and {} divisions of the GPUs", cuts_.size(),
                          division_count_));
  for (std::size_t i = 0; i < std::min<std::size_t>(reasons.size(), 4); ++i) {
    error.add_context(fmt::format("{} left out: {}", -reasons[i].first, reasons[i].second));
  }
  throw error;
}

}  // namespace lockstep
