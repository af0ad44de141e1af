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

void check_base(const MixedJob& mixed) {
  const Job& base = mixed.base;
  if (base.schedule != "1f1b") {
    refuse("other schedule", "schedule", "1f1b");
  }
  if (base.precision == Precision::kFp8 && base.fp8_recipe == Fp8Recipe::kDelayed) {
    refuse("fp8 with delayed scaling", "fp8_recipe", "tensorwise, blockwise or mxfp8");
  }
  if (has_experts(base.model) && mixed.width() % (base.ep * expert_tp(base)) != 0) {
    refuse("experts over several of their stages", "ep",
           fmt::format("ep x expert tp that divides a stage's {} ranks", mixed.width()));
  }
  const bool own_shards = base.hsdp_replicas == mixed.pipelines();
  if (base.hsdp_replicas > 1 && !own_shards) {
    refuse("shards over some pipelines", "hsdp_replicas",
           fmt::format("1 or {}, the number of pipelines", mixed.pipelines()));
  }
  const bool by_itself =
      base.sharding == Sharding::kZero3 && own_shards && !has_experts(base.model);
  if (base.sharding > Sharding::kZero1 && !by_itself && !same_passes(mixed)) {
    refuse("ZeRO-2 or 3 over several of them, whose collectives come with every microbatch", "zero",
           "0 or 1, or the same layers a stage and microbatches in all");
  }
}

/// Groups within a stage's ranks, of all stages.
Groups in_stages(const MixedJob& mixed, RankGroup group) {
  const Groups local = groups_of(stage_layout(mixed), group);
  Groups result;
  for (const PipelineKind& kind : mixed.kinds) {
    for (const std::vector<std::int32_t>& stages : kind.first_rank) {
      for (const std::int32_t first : stages) {
        for (std::vector<std::int32_t> members : local) {
          std::ranges::for_each(members, [first](std::int32_t& rank) { rank += first; });
          result.push_back(std::move(members));
        }
      }
    }
  }
  std::ranges::sort(result);
  return result;
}

/// Of each pipeline of a kind and each group within a stage: the group's ranks in all stages, stage
/// by stage.
Groups through_stages(const PipelineKind& kind, const Groups& local) {
  Groups result;
  for (const std::vector<std::int32_t>& stages : kind.first_rank) {
    for (const std::vector<std::int32_t>& members : local) {
      std::vector<std::int32_t>& all = result.emplace_back();
      for (const std::int32_t first : stages) {
        for (const std::int32_t place : members) {
          all.push_back(first + place);
        }
      }
    }
  }
  return result;
}

/// Groups that all kinds' ranks have in common, and those of one kind's pipelines.
Groups groups_in(const MixedJob& mixed, const PipelineKind& own, RankGroup group) {
  const RankLayout layout = stage_layout(mixed);
  switch (group) {
    case RankGroup::kTp:
    case RankGroup::kCp:
    case RankGroup::kDpCp:
    case RankGroup::kEp:
    case RankGroup::kExpertTp:
      return in_stages(mixed, group);
    case RankGroup::kWorld: {
      Groups world(1);
      for (const std::vector<std::int32_t>& members : in_stages(mixed, group)) {
        world.front().insert(world.front().end(), members.begin(), members.end());
      }
      std::ranges::sort(world.front());
      return world;
    }
    case RankGroup::kPp: {
      Groups places;
      for (std::int64_t i = 0; i < mixed.width(); ++i) {
        places.push_back({static_cast<std::int32_t>(i)});
      }
      return through_stages(own, places);
    }
    case RankGroup::kModel:
    case RankGroup::kExpertModel: {
      Groups copies = through_stages(own, groups_of(layout, group));
      std::ranges::for_each(copies, [](std::vector<std::int32_t>& c) { std::ranges::sort(c); });
      return copies;
    }
    default:
      break;
  }
  LOCKSTEP_CHECK(false, "no such group is used");
  return {};
}

std::vector<RankRange> ranges_of(const PipelineKind& kind, std::size_t stage, std::int64_t width) {
  std::vector<std::int32_t> firsts;
  for (const std::vector<std::int32_t>& stages : kind.first_rank) {
    firsts.push_back(stages[stage]);
  }
  std::ranges::sort(firsts);
  std::vector<RankRange> ranges;
  for (const std::int32_t first : firsts) {
    const std::int32_t end = first + static_cast<std::int32_t>(width);
    if (!ranges.empty() && ranges.back().end == first) {
      ranges.back().end = end;
    } else {
      ranges.push_back({first, end, 1});
    }
  }
  return ranges;
}

/// What a stage's chunks share with the ranks of other pipelines.
StagePieces pieces_of_stage(const MixedJob& mixed, const MixedPieces& pieces,
                            const PipelineKind& kind, std::int64_t stage, Families& families) {
  StagePieces own;
  const std::vector<std::int64_t> layer = first_layers(kind);
  for (std::int64_t v = stage; v < std::ssize(kind.layers); v += kind.stages()) {
    const std::int64_t begin = layer[static_cast<std::size_t>(v)];
    const std::int64_t end = layer[static_cast<std::size_t>(v + 1)];
    StagePieces::Chunk& chunk = own.chunks.emplace_back();
    chunk.cuts = pieces.cuts(begin, end - begin, v == 0 && !mixed.base.model.before.empty());
    for (std::size_t p = pieces.at(begin); p < pieces.at(end); ++p) {
      const auto family = [&](std::string_view name, const std::vector<Groups>& groups) {
        const bool some = p < groups.size() && groups[p].front().size() > 1;
        return some ? families.add(fmt::format("{}.piece{}", name, p), groups[p]) : -1;
      };
      chunk.dense.push_back(family("dp", pieces.dense));
      chunk.expert.push_back(family("dp_ep", pieces.expert));
      chunk.replica.push_back(family("dp.replica", pieces.replica));
    }
  }
  if (mixed.base.hsdp_replicas > 1) {
    own.shard = families.of(RankGroup::kDpCp);
  }
  return own;
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
    sum += kind.pipelines() * kind.stages() * width();
  }
  return sum;
}

RankLayout stage_layout(const MixedJob& mixed) {
  RankLayout layout;
  layout.gpus = mixed.width();
  layout.tp = mixed.base.tp;
  layout.cp = mixed.base.cp;
  layout.ep = mixed.base.ep;
  layout.etp = expert_tp(mixed.base);
  return layout;
}

std::vector<std::int64_t> first_layers(const PipelineKind& kind) {
  std::vector<std::int64_t> firsts = {0};
  for (const std::int64_t layers : kind.layers) {
    firsts.push_back(firsts.back() + layers);
  }
  return firsts;
}

bool same_passes(const MixedJob& mixed) {
  const PipelineKind& first = mixed.kinds.front();
  return std::ranges::all_of(mixed.kinds, [&](const PipelineKind& kind) {
    return kind.layers == first.layers && kind.stages() == first.stages() &&
           kind.microbatches == first.microbatches;
  });
}

Job job_of(const MixedJob& mixed, const PipelineKind& kind) {
  Job job = mixed.base;
  const std::int64_t copies = mixed.pipelines() * mixed.copies;
  job.pp = kind.stages();
  job.vpp = kind.chunks();
  job.gpus = job.tp * job.cp * job.pp * copies;
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
  std::set<std::int64_t> begins;
  for (const PipelineKind& kind : mixed.kinds) {
    const std::vector<std::int64_t> firsts = first_layers(kind);
    begins.insert(firsts.begin(), firsts.end() - 1);
  }
  MixedPieces pieces;
  pieces.first_layer.assign(begins.begin(), begins.end());
  // First ranks of all stages with a piece.
  std::vector<std::vector<std::int32_t>> stages_with(pieces.first_layer.size());
  for (const PipelineKind& kind : mixed.kinds) {
    const std::vector<std::int64_t> firsts = first_layers(kind);
    for (std::size_t v = 0; v < kind.layers.size(); ++v) {
      for (std::size_t p = pieces.at(firsts[v]); p < pieces.at(firsts[v + 1]); ++p) {
        for (const std::vector<std::int32_t>& stages : kind.first_rank) {
          stages_with[p].push_back(stages[v % kind.gpu_type.size()]);
        }
      }
    }
  }
  const auto join = [&](const Groups& local, std::vector<Groups>& all) {
    for (const std::vector<std::int32_t>& firsts : stages_with) {
      Groups& groups = all.emplace_back();
      for (const std::vector<std::int32_t>& members : local) {
        std::vector<std::int32_t>& together = groups.emplace_back();
        for (const std::int32_t first : firsts) {
          for (const std::int32_t place : members) {
            together.push_back(first + place);
          }
        }
        std::ranges::sort(together);
      }
      std::ranges::sort(groups);
    }
  };
  const RankLayout layout = stage_layout(mixed);
  join(groups_of(layout, RankGroup::kDpCp), pieces.dense);
  if (has_experts(mixed.base.model)) {
    join(groups_of(layout, RankGroup::kExpertDp), pieces.expert);
  }
  if (mixed.base.hsdp_replicas > 1) {
    Groups places;
    for (std::int64_t i = 0; i < mixed.width(); ++i) {
      places.push_back({static_cast<std::int32_t>(i)});
    }
    join(places, pieces.replica);
  }
  return pieces;
}

void check_mixed(const MixedJob& mixed) {
  check_base(mixed);
  std::int64_t samples = 0;
  std::set<std::int32_t> taken;
  bool one_stage = false, several = false, tied = false;
  for (const PipelineKind& kind : mixed.kinds) {
    LOCKSTEP_CHECK(!kind.gpu_type.empty() && !kind.layers.empty() &&
                       kind.layers.size() % kind.gpu_type.size() == 0 && !kind.first_rank.empty(),
                   "a kind has stages, layers for the chunks of each, and pipelines");
    Job job = job_of(mixed, kind);
    for (const std::size_t type : std::set(kind.gpu_type.begin(), kind.gpu_type.end())) {
      job.gpu_type = mixed.gpu_types[type];
      check_job(job);
    }
    samples += kind.microbatches * kind.pipelines() * mixed.copies * mixed.base.micro_batch;
    (kind.stages() == 1 ? one_stage : several) = true;
    for (const std::vector<std::int32_t>& stages : kind.first_rank) {
      for (const std::int32_t first : stages) {
        for (std::int32_t rank = first; rank < first + mixed.width(); ++rank) {
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
    for (std::size_t s = 0; s < kind.gpu_type.size(); ++s) {
      const std::size_t type = kind.gpu_type[s];
      std::unique_ptr<StagePlan>& plan = plans[type];
      if (!plan) {
        plan = std::make_unique<StagePlan>(job, times[type]);
      }
      const auto stage = static_cast<std::int64_t>(s);
      const StagePieces own = pieces_of_stage(mixed, pieces, kind, stage, families);
      StageProgram program(job, *plan, times[type], families, stage, &own);
      table.programs.push_back(
          program.build(schedule.order({job.pp, job.vpp, kind.microbatches}, stage)));
      table.programs.back().ranks = ranges_of(kind, s, mixed.width());
      last_rank = std::max(last_rank, table.programs.back().ranks.back().end - 1);
      operations += std::ssize(table.programs.back().ops);
      if (operations > kMaxExactOps) {
        throw Error(fmt::format("the step has more than {} operations", kMaxExactOps))
            .field("--global_batch")
            .hint("fewer microbatches: a smaller global_batch or a larger micro_batch");
      }
    }
  }
  table.groups = families.take();
  Workload workload;
  WorkloadJob& out = workload.jobs.emplace_back();
  out.name = mixed.base.model.name.empty() ? "job" : mixed.base.model.name;
  out.parallel.gpus = last_rank + 1;
  out.parallel.tp = mixed.base.tp;
  out.parallel.cp = mixed.base.cp;
  out.parallel.ep = mixed.base.ep;
  out.parallel.pp = 1;  // of some, and not of others
  out.work = std::move(table);
  return workload;
}

}  // namespace lockstep
