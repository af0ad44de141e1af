#include "planner/job/mixed_leaves.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "generator/exact/stage_plan.h"

namespace lockstep {
namespace {

/// For what sums in another order.
constexpr double kSlack = 1 - 1e-9;

std::int64_t pipelines_of(const Division& division) {
  std::int64_t sum = 0;
  for (const PipelineForm& form : division) {
    sum += form.pipelines;
  }
  return sum;
}

/// With stages at these rates, the least time of m microbatches, whatever the split: stage s takes
/// t_s for its part, t_s rate_s, of a microbatch, and m t_s after the stages before it have had
/// one: t_0 + … + t_(s-1) + m t_s <= T. Of c seconds left before T the stages from s on can make at
/// most F_s c: t_s between 0 and c / m leaves c - t_s to the next, so F_s is the larger of F_(s+1)
/// and rate_s / m + F_(s+1) (1 - 1/m). The parts add up to 1: T = 1 / F_0. Chunks may make what
/// comes before as short as one likes.
double least_of(const PipelineForm& form, const std::vector<double>& rates, bool chunks, double m) {
  double most = 0;
  for (std::size_t s = form.types.size(); s-- > 0;) {
    const double rate = rates[form.types[s]] / m;
    most = chunks ? most + rate : std::max(most, rate + most * (1 - 1 / m));
  }
  return 1 / most;
}

/// The least time in which all forms together end so many microbatches, each pipeline one at least.
double least_together(const Division& division, const std::vector<double>& one_stage,
                      const std::vector<double>& several, bool chunks, double microbatches) {
  const auto rates = [&](const PipelineForm& form) -> const std::vector<double>& {
    return form.types.size() == 1 ? one_stage : several;
  };
  const auto ended = [&](double time) {
    double sum = 0;
    for (const PipelineForm& form : division) {
      double low = 1, high = microbatches;
      if (least_of(form, rates(form), chunks, low) > time) {
        return 0.0;
      }
      for (int i = 0; i < 24 && high - low > 1e-4 * low; ++i) {
        const double middle = (low + high) / 2;
        (least_of(form, rates(form), chunks, middle) <= time ? low : high) = middle;
      }
      sum += static_cast<double>(form.pipelines) * high;
    }
    return sum;
  };
  double low = 0, high = 0;
  for (const PipelineForm& form : division) {
    high = std::max(high, least_of(form, rates(form), chunks, microbatches));
  }
  for (int i = 0; i < 24 && high - low > 1e-4 * low; ++i) {
    const double middle = (low + high) / 2;
    (ended(middle) >= microbatches ? high : low) = middle;
  }
  return low * kSlack;
}

}  // namespace

MixedLeaves::MixedLeaves(const MixedProblem& problem, MixedBound& bound)
    : problem_(problem),
      layers_(layer_count(problem.base.model)),
      fits_(problem, bound),
      memory_of_(problem, bound) {
  for (const Module& module : problem.base.model.after) {
    tied_ = tied_ || module.shared;
  }
  cuts_ = mixed_cuts(problem, left_out_);
  for (std::size_t cut = 0; cut < cuts_.size(); ++cut) {
    ground_of_.push_back(&grounds(cuts_[cut]));
    add_nodes(cut);
  }
}

const MixedLeaves::Grounds& MixedLeaves::grounds(const MixedCut& cut) {
  const auto [found, is_new] = grounds_.try_emplace({cut.width(), cut.job.tp});
  Grounds& ground = found->second;
  if (is_new) {
    std::vector<std::int64_t> counts;
    for (const GpuPool& pool : problem_.pools) {
      ground.slots.push_back(pool.slots(cut.width(), cut.job.tp));
      counts.push_back(std::ssize(ground.slots.back()));
    }
    ground.divisions = divisions(counts, layers_);
    for (const Division& division : ground.divisions) {
      ground.families.push_back(family_of(division, problem_.pools));
    }
    division_count_ += std::ssize(ground.divisions);
    if (ground.divisions.empty()) {
      ++left_out_[fmt::format("no stage of {} GPUs of a type, tp {} in a server", cut.width(),
                              cut.job.tp)];
    }
  }
  return ground;
}

void MixedLeaves::add_nodes(std::size_t cut) {
  const std::vector<Division>& divisions = ground_of_[cut]->divisions;
  for (std::size_t d = 0; d < divisions.size(); ++d) {
    const std::string why = obstacle(cuts_[cut], divisions[d]);
    if (why.empty()) {
      nodes_.push_back({cut, d});
    } else {
      ++left_out_[why];
    }
  }
}

std::string MixedLeaves::obstacle(const MixedCut& cut, const Division& division) const {
  const PlanAxes& axes = problem_.axes;
  const std::int64_t pipelines = pipelines_of(division), all = microbatches(cut);
  const std::int64_t chunks = cut.job.vpp;
  std::size_t least = division.front().types.size(), most = 0;
  std::int64_t interleaved = 0;  // microbatches that these have at least
  for (const PipelineForm& form : division) {
    const auto depth = std::ssize(form.types);
    if (!axes.pp.empty() && std::ranges::count(axes.pp, depth) == 0) {
      return "pipelines of another number of stages than --pp";
    }
    interleaved += form.pipelines * (chunks > 1 ? depth : 1);
    least = std::min(least, form.types.size());
    most = std::max(most, form.types.size());
  }
  if (tied_ && least == 1 && most > 1) {
    return "tied embeddings, and pipelines of one stage beside others";
  }
  if (pipelines > all) {
    return "fewer microbatches than pipelines";
  }
  if (chunks > 1 && most == 1) {
    return "chunks of pipelines of one stage";
  }
  if (chunks > 1 && static_cast<std::int64_t>(most) * chunks > layers_) {
    return "fewer layers than chunks";
  }
  if (interleaved > all) {
    return "fewer microbatches than stages of interleaved pipelines";
  }
  const Sharding sharding = cut.job.sharding;
  if (axes.sharding.empty() && sharding > Sharding::kNone &&
      pipelines * cut.copies * cut.job.cp == 1) {
    return "ZeRO without data-parallel copies";
  }
  if (cut.hybrid && pipelines == 1) {
    return "hybrid sharding of one pipeline";
  }
  if (!axes.hsdp_replicas.empty() &&
      std::ranges::count(axes.hsdp_replicas, cut.hybrid ? pipelines : 1) == 0) {
    return "another number of replicas than --hsdp_replicas";
  }
  if (sharding > Sharding::kZero1 && !cut.hybrid && (least != most || all % pipelines != 0)) {
    return "ZeRO-2 or 3, and pipelines with other stages or microbatches than others";
  }
  return {};
}

const Division& MixedLeaves::division_of(const Node& node) const {
  return ground_of_[node.cut]->divisions[node.division];
}

const std::string& MixedLeaves::node_family(std::size_t node) const {
  return ground_of_[nodes_[node].cut]->families[nodes_[node].division];
}

std::int64_t MixedLeaves::microbatches(const MixedCut& cut) const {
  return problem_.base.global_batch / (cut.job.micro_batch * cut.copies);
}

MixedLeaves::Least MixedLeaves::least(std::size_t id) {
  const Node& node = nodes_[id];
  const MixedCut& cut = cuts_[node.cut];
  Least least;
  const bool chunks = cut.job.vpp > 1;
  const auto [found, is_new] =
      least_s_.try_emplace({cut.unit, cut.width(), node.division, chunks}, 0.0);
  if (is_new) {
    found->second =
        least_together(division_of(node), fits_.rates(cut, false), fits_.rates(cut, true), chunks,
                       static_cast<double>(microbatches(cut)));
  }
  least.step_s = found->second;
  if (problem_.objective == PlanObjective::kMemory) {
    least.memory = least_memory(node);
  }
  return least;
}

/// The states of a mean stage, of the form where that is most.
Bytes MixedLeaves::least_memory(const Node& node) {
  const MixedCut& cut = cuts_[node.cut];
  const Division& division = division_of(node);
  Bytes most;
  for (const PipelineForm& form : division) {
    const auto depth = std::ssize(form.types);
    Job job = job_on(problem_, cut, depth, pipelines_of(division));
    const ModelMemory& memory = fits_.memory(cut, job);
    job.gpus /= depth;
    job.pp = job.vpp = 1;
    const StageMemory whole = memory_by_stage(job, memory).front();
    most =
        std::max(most, Bytes((whole.weights + whole.gradients + whole.optimizer).count() / depth));
  }
  return most;
}

double MixedLeaves::least_value(std::size_t id) {
  const Least known = least(id);
  if (problem_.objective == PlanObjective::kTime) {
    return known.step_s;
  }
  const Node& node = nodes_[id];
  MixedPlan plan;
  plan.job.base = cuts_[node.cut].job;
  plan.job.copies = cuts_[node.cut].copies;
  for (const PipelineForm& form : division_of(node)) {
    PipelineKind& kind = plan.job.kinds.emplace_back();
    kind.gpu_type = form.types;
    kind.first_rank.resize(static_cast<std::size_t>(form.pipelines));
  }
  plan.floor.step_s = known.step_s;
  plan.memory = known.memory;
  return objective_value(problem_, plan);
}

std::vector<std::size_t> MixedLeaves::expand(std::size_t id) {
  const Node& node = nodes_[id];
  const MixedCut& cut = cuts_[node.cut];
  const Division& division = division_of(node);
  std::string why;
  const bool same = cut.job.sharding > Sharding::kZero1 && !cut.hybrid;
  Leaf leaf;
  leaf.node = id;
  leaf.kinds = same ? same_kinds(node, why) : kinds_of(node, why);
  if (leaf.kinds.empty()) {
    ++left_out_[why];
    return {};
  }
  bool several = false;
  for (const Kind& kind : leaf.kinds) {
    several = several || division[kind.form].types.size() > 1;
    leaf.busy_s = std::max(leaf.busy_s, kind.fit->busy_s(kind.microbatches));
  }
  std::vector<std::size_t> ids = {leaves_.size()};
  leaves_.push_back(leaf);
  if (several && pipelines_of(division) > 1) {
    const auto pipeline_by_pipeline = placed(leaf);
    leaf.stage_by_stage = true;
    if (placed(leaf) != pipeline_by_pipeline) {
      ids.push_back(leaves_.size());
      leaves_.push_back(std::move(leaf));
    }
  }
  return ids;
}

/// Each form's layers and share of the batch as fits it.
std::vector<MixedLeaves::Kind> MixedLeaves::kinds_of(const Node& node, std::string& why) {
  const MixedCut& cut = cuts_[node.cut];
  const Division& division = division_of(node);
  std::vector<const std::vector<PipelineFit>*> fits;
  std::vector<double> slowest, fill;
  std::vector<std::int64_t> pipelines, grain;
  for (const PipelineForm& form : division) {
    StagePools stages;
    for (const std::size_t type : form.types) {
      stages.push_back({type});
    }
    fits.push_back(&fits_.of(node.cut, cut, stages, pipelines_of(division)));
    if (fits.back()->empty()) {
      why = "more memory than the GPUs have";
      return {};
    }
    const PipelineFit& first = fits.back()->front();
    slowest.push_back(first.slowest_s);
    fill.push_back(first.fill_s());
    pipelines.push_back(form.pipelines);
    grain.push_back(first.chunks > 1 ? std::ssize(form.types) : 1);
  }
  const std::vector<Share> shares = share_out(pipelines, slowest, fill, grain, microbatches(cut));
  std::vector<Kind> kinds;
  for (std::size_t f = 0; f < shares.size(); ++f) {
    for (const auto& [some, each] : shares[f]) {
      const PipelineFit& fit = *std::ranges::min_element(
          *fits[f], {}, [m = each](const PipelineFit& candidate) { return candidate.end_s(m); });
      kinds.push_back({f, some, each, &fit});
    }
  }
  if (kinds.empty()) {
    why = "microbatches that interleaved pipelines cannot share out";
  }
  return kinds;
}

/// The same layers and share for all forms.
std::vector<MixedLeaves::Kind> MixedLeaves::same_kinds(const Node& node, std::string& why) {
  const MixedCut& cut = cuts_[node.cut];
  const Division& division = division_of(node);
  const std::int64_t pipelines = pipelines_of(division), each = microbatches(cut) / pipelines;
  StagePools stages(division.front().types.size());
  for (const PipelineForm& form : division) {
    for (std::size_t s = 0; s < stages.size(); ++s) {
      if (std::ranges::count(stages[s], form.types[s]) == 0) {
        stages[s].push_back(form.types[s]);
      }
    }
  }
  if (cut.job.vpp > 1 && each % std::ssize(stages) != 0) {
    why = "microbatches that interleaved pipelines cannot share out";
    return {};
  }
  const std::vector<PipelineFit>& fits = fits_.of(node.cut, cut, stages, pipelines);
  if (fits.empty()) {
    why = "more memory than the GPUs have";
    return {};
  }
  const PipelineFit& best = *std::ranges::min_element(
      fits, {}, [&](const PipelineFit& candidate) { return candidate.end_s(each); });
  std::vector<Kind> kinds;
  for (std::size_t f = 0; f < division.size(); ++f) {
    joint_fits_.push_back(fits_.on(cut, division[f].types, best.layers));
    kinds.push_back({f, division[f].pipelines, each, &joint_fits_.back()});
  }
  return kinds;
}

MixedPlan MixedLeaves::plan(std::size_t id) const {
  const Leaf& leaf = leaves_[id];
  const Node& node = nodes_[leaf.node];
  const MixedCut& cut = cuts_[node.cut];
  const Division& division = division_of(node);
  MixedPlan plan;
  plan.job.base = cut.job;
  plan.job.base.vpp = 1;
  plan.job.base.hsdp_replicas = cut.hybrid ? pipelines_of(division) : 1;
  plan.job.copies = cut.copies;
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
    made.gpu_type = division[kind.form].types;
    for (std::int64_t i = 0; i < kind.pipelines; ++i) {
      made.first_rank.push_back(ranks[kind.form][taken[kind.form]++]);
    }
  }
  for (const PipelineKind& kind : plan.job.kinds) {
    const Job job = with_model(problem_.base, job_of(plan.job, kind));
    const ModelMemory& memory = [&]() -> const ModelMemory& {
      const std::lock_guard lock(mutex_);
      return memory_of_.memory(cut, job);
    }();
    const std::vector<StageMemory> stages = memory_by_stage(job, memory);
    for (std::size_t s = 0; s < stages.size(); ++s) {
      plan.memory = std::max(plan.memory, stages[s].total());
      plan.full = std::max(plan.full, stages[s].total() / problem_.pools[kind.gpu_type[s]].memory);
    }
  }
  return plan;
}

/// First ranks by form, pipeline and stage.
MixedLeaves::FirstRanks MixedLeaves::placed(const Leaf& leaf) const {
  const Node& node = nodes_[leaf.node];
  const std::vector<std::vector<std::int32_t>>& slots = ground_of_[node.cut]->slots;
  std::vector<std::size_t> next(slots.size());
  FirstRanks ranks;
  for (const PipelineForm& form : division_of(node)) {
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
