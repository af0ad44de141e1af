#include "generator/exact/mixed_job.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "generator/exact/exact_workload.h"
#include "generator/exact/rank_sizes.h"
#include "generator/exact/stage_program.h"

namespace lockstep {
namespace {

using Groups = Families::Groups;

[[noreturn]] void refuse(std::string_view what, std::string_view flag, std::string_view expected) {
  throw Error(fmt::format("pipelines that differ have no {}", what))
      .field(fmt::format("--{}", flag))
      .expected(std::string(expected));
}

bool has_experts(const Model& model) {
  return std::ranges::any_of(model.blocks, [](const LayerBlock& block) {
    return std::ranges::any_of(
        block.modules, [](const Module& module) { return module.kind == ModuleKind::kMoe; });
  });
}

void check_base(const Job& base) {
  if (base.cp > 1) {
    refuse("context parallelism", "cp", "1");
  }
  if (base.ep > 1 || has_experts(base.model)) {
    refuse("experts", "model", "a model without experts");
  }
  if (base.vpp > 1) {
    refuse("interleaved stages", "vpp", "1");
  }
  if (base.sharding > Sharding::kZero1) {
    refuse("ZeRO-2 or 3, whose collectives come with every microbatch", "zero", "0 or 1");
  }
  if (base.schedule != "1f1b") {
    refuse("other schedule", "schedule", "1f1b");
  }
  if (base.precision == Precision::kFp8 && base.fp8_recipe == Fp8Recipe::kDelayed) {
    refuse("fp8 with delayed scaling", "fp8_recipe", "tensorwise, blockwise or mxfp8");
  }
}

/// Groups that all kinds' ranks have in common, and those of one kind's pipelines.
Groups groups_in(const MixedJob& mixed, const PipelineKind& own, RankGroup group) {
  const auto tp = static_cast<std::int32_t>(mixed.base.tp);
  Groups result;
  std::vector<std::int32_t> world;
  for (const PipelineKind& kind : mixed.kinds) {
    for (const std::vector<std::int32_t>& stages : kind.first_rank) {
      for (const std::int32_t first : stages) {
        std::vector<std::int32_t> ranks;
        for (std::int32_t i = 0; i < tp; ++i) {
          ranks.push_back(first + i);
        }
        world.insert(world.end(), ranks.begin(), ranks.end());
        if (group == RankGroup::kTp) {
          result.push_back(std::move(ranks));
        }
      }
    }
  }
  if (group == RankGroup::kWorld) {
    std::ranges::sort(world);
    return {std::move(world)};
  }
  if (group == RankGroup::kTp) {
    std::ranges::sort(result);
    return result;
  }
  LOCKSTEP_CHECK(group == RankGroup::kPp || group == RankGroup::kModel, "no such group is used");
  for (const std::vector<std::int32_t>& stages : own.first_rank) {
    std::vector<std::int32_t> copy;
    for (std::int32_t i = 0; i < tp; ++i) {
      std::vector<std::int32_t> pipeline;
      for (const std::int32_t first : stages) {
        pipeline.push_back(first + i);
        copy.push_back(first + i);
      }
      if (group == RankGroup::kPp) {
        result.push_back(std::move(pipeline));
      }
    }
    if (group == RankGroup::kModel) {
      std::ranges::sort(copy);
      result.push_back(std::move(copy));
    }
  }
  return result;
}

std::vector<RankRange> ranges_of(const PipelineKind& kind, std::size_t stage, std::int64_t tp) {
  std::vector<std::int32_t> firsts;
  for (const std::vector<std::int32_t>& stages : kind.first_rank) {
    firsts.push_back(stages[stage]);
  }
  std::ranges::sort(firsts);
  std::vector<RankRange> ranges;
  for (const std::int32_t first : firsts) {
    const std::int32_t end = first + static_cast<std::int32_t>(tp);
    if (!ranges.empty() && ranges.back().end == first) {
      ranges.back().end = end;
    } else {
      ranges.push_back({first, end, 1});
    }
  }
  return ranges;
}

}  // namespace

std::int64_t MixedJob::pipelines() const {
  std::int64_t sum = 0;
  for (const PipelineKind& kind : kinds) {
    sum += kind.pipelines();
  }
  return sum;
}

std::int64_t MixedJob::gpus() const {
  std::int64_t sum = 0;
  for (const PipelineKind& kind : kinds) {
    sum += kind.pipelines() * kind.stages() * base.tp;
  }
  return sum;
}

Job job_of(const MixedJob& mixed, const PipelineKind& kind) {
  Job job = mixed.base;
  const std::int64_t copies = mixed.pipelines();
  job.pp = kind.stages();
  job.gpus = job.tp * job.pp * copies;
  job.first_stage_layers = job.last_stage_layers = 0;
  job.stage_layers = kind.layers;
  job.rank_order = "tp-cp-ep-dp-pp";
  job.global_batch = kind.microbatches * job.micro_batch * copies;
  job.gpu_type = mixed.gpu_types[kind.gpu_type.front()];
  return job;
}

std::size_t MixedPieces::at(std::int64_t layer) const {
  return static_cast<std::size_t>(std::ranges::lower_bound(first_layer, layer) -
                                  first_layer.begin());
}

std::vector<std::size_t> MixedPieces::cuts(std::int64_t layer, std::int64_t layers,
                                           bool embedding) const {
  std::vector<std::size_t> result;
  for (std::size_t p = at(layer) + 1; p < at(layer + layers); ++p) {
    result.push_back(static_cast<std::size_t>(first_layer[p] - layer + (embedding ? 1 : 0)));
  }
  return result;
}

MixedPieces pieces_of(const MixedJob& mixed) {
  std::set<std::int64_t> first_layers;
  for (const PipelineKind& kind : mixed.kinds) {
    std::int64_t layer = 0;
    for (const std::int64_t layers : kind.layers) {
      first_layers.insert(layer);
      layer += layers;
    }
  }
  MixedPieces pieces;
  pieces.first_layer.assign(first_layers.begin(), first_layers.end());
  const auto tp = static_cast<std::size_t>(mixed.base.tp);
  pieces.groups.assign(pieces.first_layer.size(), Groups(tp));
  for (const PipelineKind& kind : mixed.kinds) {
    std::int64_t layer = 0;
    for (std::size_t s = 0; s < kind.layers.size(); ++s) {
      const std::size_t end = pieces.at(layer + kind.layers[s]);
      for (std::size_t p = pieces.at(layer); p < end; ++p) {
        for (const std::vector<std::int32_t>& stages : kind.first_rank) {
          for (std::size_t i = 0; i < tp; ++i) {
            pieces.groups[p][i].push_back(stages[s] + static_cast<std::int32_t>(i));
          }
        }
      }
      layer += kind.layers[s];
    }
  }
  for (Groups& groups : pieces.groups) {
    std::ranges::for_each(groups,
                          [](std::vector<std::int32_t>& members) { std::ranges::sort(members); });
    std::ranges::sort(groups);
  }
  return pieces;
}

void check_mixed(const MixedJob& mixed) {
  check_base(mixed.base);
  std::int64_t samples = 0;
  std::set<std::int32_t> taken;
  bool one_stage = false, several = false, tied = false;
  for (const PipelineKind& kind : mixed.kinds) {
    LOCKSTEP_CHECK(!kind.layers.empty() && kind.layers.size() == kind.gpu_type.size() &&
                       !kind.first_rank.empty(),
                   "a kind has stages, a GPU type for each, and pipelines");
    Job job = job_of(mixed, kind);
    for (const std::size_t type : std::set(kind.gpu_type.begin(), kind.gpu_type.end())) {
      job.gpu_type = mixed.gpu_types[type];
      check_job(job);
    }
    samples += kind.microbatches * kind.pipelines() * mixed.base.micro_batch;
    (kind.stages() == 1 ? one_stage : several) = true;
    for (const std::vector<std::int32_t>& stages : kind.first_rank) {
      for (const std::int32_t first : stages) {
        for (std::int32_t rank = first; rank < first + mixed.base.tp; ++rank) {
          LOCKSTEP_CHECK(taken.insert(rank).second, "a rank is in one stage");
        }
      }
    }
  }
  for (const Module& module : mixed.base.model.after) {
    tied = tied || module.shared;
  }
  if (tied && one_stage && several) {
    throw Error("a table that the first and the last stage share is one on pipelines of one stage")
        .field("--pp")
        .expected("all pipelines of one stage, or all of several");
  }
  if (samples != mixed.base.global_batch) {
    throw Error(
        fmt::format("the pipelines run {} of {} sequences", samples, mixed.base.global_batch))
        .field("--global_batch")
        .expected("a multiple of micro_batch");
  }
}

Workload mixed_workload(const MixedJob& mixed, std::span<const OperatorTime> times) {
  check_mixed(mixed);
  Families families([&](RankGroup group) { return groups_in(mixed, {}, group); });
  const MixedPieces pieces = pieces_of(mixed);
  std::vector<std::int32_t> piece_family(pieces.groups.size(), -1);
  for (std::size_t p = 0; p < pieces.groups.size() && mixed.pipelines() > 1; ++p) {
    piece_family[p] = families.add(fmt::format("dp.piece{}", p), pieces.groups[p]);
  }
  const PipelineSchedule& schedule = pipeline_schedule_named(mixed.base.schedule);
  OpTable table;
  std::int32_t last_rank = 0;
  std::int64_t operations = 0;
  for (std::size_t k = 0; k < mixed.kinds.size(); ++k) {
    const PipelineKind& kind = mixed.kinds[k];
    const Job job = job_of(mixed, kind);
    families.enter_part(fmt::format("kind{}", k),
                        [&](RankGroup group) { return groups_in(mixed, kind, group); });
    std::map<std::size_t, std::unique_ptr<StagePlan>> plans;
    std::int64_t layer = 0;
    for (std::size_t s = 0; s < kind.layers.size(); ++s) {
      const std::size_t type = kind.gpu_type[s];
      std::unique_ptr<StagePlan>& plan = plans[type];
      if (!plan) {
        plan = std::make_unique<StagePlan>(job, times[type]);
      }
      StagePieces own;
      own.cuts = pieces.cuts(layer, kind.layers[s], s == 0 && !job.model.before.empty());
      const auto first = piece_family.begin() + static_cast<std::ptrdiff_t>(pieces.at(layer));
      own.families.assign(first, first + std::ssize(own.cuts) + 1);
      const auto stage = static_cast<std::int64_t>(s);
      StageProgram program(job, *plan, times[type], families, stage, &own);
      table.programs.push_back(
          program.build(schedule.order({job.pp, 1, kind.microbatches}, stage)));
      table.programs.back().ranks = ranges_of(kind, s, mixed.base.tp);
      last_rank = std::max(last_rank, table.programs.back().ranks.back().end - 1);
      operations += std::ssize(table.programs.back().ops);
      if (operations > kMaxExactOps) {
        throw Error(fmt::format("the step has more than {} operations", kMaxExactOps))
            .field("--global_batch")
            .hint("fewer microbatches: a smaller global_batch or a larger micro_batch");
      }
      layer += kind.layers[s];
    }
  }
  table.groups = families.take();
  Workload workload;
  WorkloadJob& out = workload.jobs.emplace_back();
  out.name = mixed.base.model.name.empty() ? "job" : mixed.base.model.name;
  out.parallel.gpus = last_rank + 1;
  out.parallel.tp = mixed.base.tp;
  out.parallel.pp = 1;  // of some, and not of others
  out.work = std::move(table);
  return workload;
}

}  // namespace lockstep
