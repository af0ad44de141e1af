#include "generator/exact/workload_of_stages.h"

#include <utility>

#include "generator/exact/rank_sizes.h"

namespace lockstep {
namespace {

/// Ranks as few ranges, each a run of consecutive ones.
std::vector<RankRange> ranges_of(const std::vector<std::int32_t>& stages, std::size_t stage) {
  std::vector<RankRange> ranges;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const auto rank = static_cast<std::int32_t>(i);
    if (static_cast<std::size_t>(stages[i]) != stage) {
      continue;
    }
    if (!ranges.empty() && ranges.back().end == rank) {
      ++ranges.back().end;
    } else {
      ranges.push_back({rank, rank + 1, 1});
    }
  }
  return ranges;
}

}  // namespace

Workload workload_of_stages(const Job& job, std::vector<OpProgram> programs,
                            std::vector<GroupFamily> groups) {
  const std::vector<std::int32_t> stages = stage_of_ranks(layout_of(job));
  for (std::size_t stage = 0; stage < programs.size(); ++stage) {
    programs[stage].ranks = ranges_of(stages, stage);
  }
  Workload workload;
  WorkloadJob& out = workload.jobs.emplace_back();
  out.name = job.model.name.empty() ? "job" : job.model.name;
  out.parallel = {job.gpus, job.tp, job.ep, job.pp, job.vpp, job.microbatches(), job.cp};
  out.work = OpTable{std::move(groups), std::move(programs)};
  return workload;
}

}  // namespace lockstep
