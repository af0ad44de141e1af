#include "generator/exact/exact_workload.h"

#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "generator/exact/stage_program.h"

namespace lockstep {
namespace {

/// Ranks as few ranges, each a run of consecutive ones.
std::vector<RankRange> ranges_of(const std::vector<std::int32_t>& stages, std::int64_t stage) {
  std::vector<RankRange> ranges;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const auto rank = static_cast<std::int32_t>(i);
    if (stages[i] != stage) {
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

/// Refuses before memory is taken. Besides its steps a pass has at most two messages and with
/// ZeRO-3 five collectives a unit.
void check_size(const Job& job, const StagePlan& plan) {
  double operations = 0;
  for (std::int64_t stage = 0; stage < job.pp; ++stage) {
    plan.parameters(stage);  // throws if a stage's sum, and so a bucket's, leaves 64 bits
    for (std::int64_t chunk = 0; chunk < job.vpp; ++chunk) {
      for (const PlacedUnit& placed : plan.units(stage, chunk)) {
        operations += static_cast<double>(placed.unit->forward.steps.size() +
                                          placed.unit->backward.steps.size() + 8);
      }
    }
  }
  operations *= static_cast<double>(job.microbatches());
  if (operations > static_cast<double>(kMaxExactOps)) {
    throw Error(fmt::format("the step has about {:.3g} operations", operations))
        .field("global_batch")
        .expected(fmt::format("at most {}", kMaxExactOps))
        .hint("fewer microbatches: a smaller global_batch or a larger micro_batch");
  }
}

}  // namespace

Workload exact_workload(const Job& job, const OperatorTime& time) {
  check_job(job);
  const StagePlan plan(job, time);
  check_size(job, plan);
  const RankLayout layout = layout_of(job);
  const std::vector<std::int32_t> stages = stage_of_ranks(layout);
  const PipelineSchedule& schedule = pipeline_schedule_named(job.schedule);
  const PipelineShape shape{job.pp, job.vpp, job.microbatches()};
  Families families(layout, job.hsdp_replicas);
  OpTable table;
  for (std::int64_t stage = 0; stage < job.pp; ++stage) {
    StageProgram program(job, plan, time, families, stage);
    table.programs.push_back(program.build(schedule.order(shape, stage)));
    table.programs.back().ranks = ranges_of(stages, stage);
  }
  table.groups = families.take();
  Workload workload;
  WorkloadJob& out = workload.jobs.emplace_back();
  out.name = job.model.name.empty() ? "job" : job.model.name;
  out.parallel = {job.gpus, job.tp, job.ep, job.pp, job.vpp, job.microbatches()};
  out.work = std::move(table);
  return workload;
}

}  // namespace lockstep
