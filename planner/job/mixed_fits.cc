#include "planner/job/mixed_fits.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "generator/exact/stage_plan.h"

namespace lockstep {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();
/// How much slower than the least a split's slowest stage may be.
constexpr std::array<double, 4> kSlacks = {0, 0.05, 0.12, 0.25};
/// For what sums in another order.
constexpr double kSlack = 1 - 1e-9;

double both(const UnitTimes& unit) { return unit.forward + unit.backward; }

/// Times of a model's layers, and of what comes before and after them, on one pool.
struct LayerTimes {
  std::vector<double> layers;
  double before = 0, after = 0;
};

LayerTimes layer_times(const ModelTimes& times, std::int64_t layers) {
  LayerTimes result;
  for (const UnitTimes* unit : times.units({0, layers, false, false})) {
    result.layers.push_back(both(*unit));
  }
  result.before = times.before.unit == nullptr ? 0 : both(times.before);
  result.after = times.after.unit == nullptr ? 0 : both(times.after);
  return result;
}

PipelineFit fit_of(const SplitProblem& split, std::vector<std::int64_t> layers,
                   std::size_t stages) {
  PipelineFit fit;
  fit.layers = std::move(layers);
  fit.chunks = std::ssize(fit.layers) / static_cast<std::int64_t>(stages);
  const std::vector<double> times = stage_times(split, fit.layers);
  fit.first_s.assign(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(stages));
  fit.stage_s.assign(stages, 0);
  for (std::size_t v = 0; v < times.size(); ++v) {
    fit.stage_s[v % stages] += times[v];
  }
  fit.slowest_s = std::ranges::max(fit.stage_s);
  fit.sum_s = std::accumulate(fit.stage_s.begin(), fit.stage_s.end(), 0.0);
  return fit;
}

StagePools on_one(const std::vector<std::size_t>& types) {
  StagePools stages;
  for (const std::size_t type : types) {
    stages.push_back({type});
  }
  return stages;
}

}  // namespace

double PipelineFit::busy_s(std::int64_t m) const {
  double before = 0, most = sum_s;
  for (std::size_t s = 0; s < stage_s.size(); ++s) {
    most = std::max(most, before + static_cast<double>(m) * stage_s[s]);
    before += first_s[s];
  }
  return most * kSlack;
}

Job job_on(const MixedProblem& problem, const MixedCut& cut, std::int64_t stages,
           std::int64_t pipelines) {
  Job job = with_model(problem.base, cut.job);
  job.pp = stages;
  job.vpp = stages > 1 ? cut.job.vpp : 1;
  job.gpus = cut.width() * stages * pipelines;
  job.hsdp_replicas = cut.hybrid ? pipelines : 1;
  // All that the schedule ever has in flight.
  const std::int64_t microbatches = job.vpp > 1 ? 2 * stages : stages;
  job.global_batch = microbatches * job.micro_batch * cut.copies * pipelines;
  return job;
}

PipelineFits::PipelineFits(const MixedProblem& problem, MixedBound& bound)
    : problem_(problem), bound_(bound), layers_(layer_count(problem.base.model)) {}

const std::vector<PipelineFit>& PipelineFits::of(std::size_t id, const MixedCut& cut,
                                                 const StagePools& stages, std::int64_t pipelines) {
  const std::int64_t shards = cut.job.sharding == Sharding::kNone || cut.hybrid ? 1 : pipelines;
  const auto [found, is_new] = fits_.try_emplace({id, shards, stages});
  if (is_new) {
    fit(cut, stages, pipelines, found->second);
  }
  return found->second;
}

PipelineFit PipelineFits::on(const MixedCut& cut, const std::vector<std::size_t>& types,
                             std::vector<std::int64_t> layers) {
  const Job job = job_on(problem_, cut, std::ssize(types), 1);
  return fit_of(split_problem(cut, on_one(types), job), std::move(layers), types.size());
}

void PipelineFits::fit(const MixedCut& cut, const StagePools& stages, std::int64_t pipelines,
                       std::vector<PipelineFit>& fits) {
  Job job = job_on(problem_, cut, std::ssize(stages), pipelines);
  SplitProblem problem = split_problem(cut, stages, job);
  const ModelMemory& held = memory(cut, job);
  if (problem_.axes.even_stages) {
    std::vector<std::int64_t> layers(problem.types.size());
    const std::vector<std::vector<ModelChunk>> even = stages_of(job);
    for (std::size_t v = 0; v < layers.size(); ++v) {
      layers[v] = even[v % stages.size()][v / stages.size()].layers;
    }
    if (shorten(problem, stages, layers, job, held)) {
      fits.push_back(fit_of(problem, std::move(layers), stages.size()));
    }
    return;
  }
  for (const double slack : kSlacks) {
    for (;;) {
      const std::vector<std::int64_t>& layers = split(cut, stages, problem, slack);
      if (layers.empty()) {
        return;
      }
      if (shorten(problem, stages, layers, job, held)) {
        const bool known =
            std::ranges::any_of(fits, [&](const PipelineFit& fit) { return fit.layers == layers; });
        if (!known) {
          fits.push_back(fit_of(problem, layers, stages.size()));
        }
        break;
      }
    }
  }
}

/// Cuts that differ in ZeRO alone ask for the same splits, as long as memory does not bind.
const std::vector<std::int64_t>& PipelineFits::split(const MixedCut& cut, const StagePools& stages,
                                                     const SplitProblem& problem, double slack) {
  const auto [found, is_new] =
      splits_.try_emplace({cut.unit, cut.width(), stages, problem.most_layers, slack});
  if (is_new) {
    const double most = least_slowest_s(problem);
    if (most < kFar) {
      found->second = split_within(problem, most * (1 + slack) * (1 + 1e-12));
    }
  }
  return found->second;
}

SplitProblem PipelineFits::split_problem(const MixedCut& cut, const StagePools& stages,
                                         const Job& job) {
  SplitProblem split;
  std::map<std::vector<std::size_t>, std::size_t> lists;
  const auto count = static_cast<std::size_t>(job.vpp) * stages.size();
  for (std::size_t v = 0; v < count; ++v) {
    const std::vector<std::size_t>& pools = stages[v % stages.size()];
    const auto [found, is_new] = lists.try_emplace(pools, split.layer_s.size());
    split.types.push_back(found->second);
    if (!is_new) {
      continue;
    }
    LayerTimes slowest;
    slowest.layers.assign(static_cast<std::size_t>(layers_), 0);
    for (const std::size_t pool : pools) {
      const LayerTimes one = layer_times(bound_.units(pool, cut.layout(), job), layers_);
      for (std::size_t l = 0; l < one.layers.size(); ++l) {
        slowest.layers[l] = std::max(slowest.layers[l], one.layers[l]);
      }
      slowest.before = std::max(slowest.before, one.before);
      slowest.after = std::max(slowest.after, one.after);
    }
    split.layer_s.push_back(std::move(slowest.layers));
    split.before_s.push_back(slowest.before);
    split.after_s.push_back(slowest.after);
  }
  split.most_layers.assign(count, layers_);
  return split;
}

/// Whether all stages fit; else those that do not may hold fewer layers from now on.
bool PipelineFits::shorten(SplitProblem& split, const StagePools& stages,
                           const std::vector<std::int64_t>& layers, Job& job,
                           const ModelMemory& memory) const {
  job.stage_layers = layers;
  const std::vector<StageMemory> needs = memory_by_stage(job, memory);
  bool fits = true;
  for (std::size_t s = 0; s < needs.size(); ++s) {
    Bytes limit = problem_.pools[stages[s].front()].memory;
    for (const std::size_t pool : stages[s]) {
      limit = std::min(limit, problem_.pools[pool].memory);
    }
    const Bytes need = needs[s].total();
    if (need <= limit) {
      continue;
    }
    fits = false;
    std::int64_t all = 0;
    for (std::size_t v = s; v < layers.size(); v += stages.size()) {
      split.most_layers[v] = layers[v];
      all += layers[v];
    }
    const auto share = static_cast<std::int64_t>(static_cast<double>(all) * (limit / need));
    for (std::int64_t fewer = std::max<std::int64_t>(1, all - share); fewer > 0; --fewer) {
      std::size_t longest = s;
      for (std::size_t v = s; v < layers.size(); v += stages.size()) {
        longest = split.most_layers[v] > split.most_layers[longest] ? v : longest;
      }
      --split.most_layers[longest];
    }
  }
  return fits;
}

const std::vector<double>& PipelineFits::rates(const MixedCut& cut, bool several_stages) {
  const auto [found, is_new] = rates_.try_emplace({cut.unit, cut.width(), several_stages});
  std::vector<double>& rates = found->second;
  if (!is_new) {
    return rates;
  }
  const Job job = job_on(problem_, cut, several_stages ? 2 : 1, 1);
  std::vector<std::vector<double>> times;  // by pool: of each unit; none where it has no slots
  double pools = 0;
  for (std::size_t pool = 0; pool < problem_.pools.size(); ++pool) {
    if (problem_.pools[pool].slots(cut.width(), cut.job.tp).empty()) {
      times.emplace_back();
      continue;
    }
    ++pools;
    LayerTimes one = layer_times(bound_.units(pool, cut.layout(), job), layers_);
    one.layers.push_back(one.before);
    one.layers.push_back(one.after);
    times.push_back(std::move(one.layers));
  }
  // A unit's share: its part of a microbatch, the mean of the pools.
  std::vector<double> share(static_cast<std::size_t>(layers_) + 2);
  for (const std::vector<double>& one : times) {
    const double all = std::accumulate(one.begin(), one.end(), 0.0);
    for (std::size_t u = 0; u < one.size(); ++u) {
      share[u] += one[u] / all / pools;
    }
  }
  for (const std::vector<double>& one : times) {
    double most = 0;
    for (std::size_t u = 0; u < one.size(); ++u) {
      most = one[u] > 0 ? std::max(most, share[u] / one[u]) : share[u] > 0 ? kFar : most;
    }
    rates.push_back(most);
  }
  return rates;
}

const ModelMemory& PipelineFits::memory(const MixedCut& cut, const Job& job) {
  const auto [found, is_new] = memory_.try_emplace({cut.unit, job.pp > 1});
  if (is_new) {
    found->second = model_memory(job);
  }
  return found->second;
}

}  // namespace lockstep
