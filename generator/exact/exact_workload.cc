#include "generator/exact/exact_workload.h"

#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "generator/exact/stage_program.h"
#include "generator/exact/workload_of_stages.h"

namespace lockstep {
namespace {

/// Refuses before memory is taken. Besides its steps a pass has at most two messages and with
/// ZeRO-3 five collectives a unit.
void check_size(const Job& job, const StagePlan& plan) {
  double operations = 0;
  for (std::int64_t stage = 0; stage < job.pp; ++stage) {
    plan.parameters(stage);  // throws if a stage's sum, and so a bucket's, leaves 64 bits
    for (std::int64_t chunk = 0; chunk < plan.chunks(); ++chunk) {
      for (const PlacedUnit& placed : plan.units(stage, chunk)) {
        operations += static_cast<double>(placed.unit->forward.steps.size() +
                                          placed.unit->backward.steps.size() + 8);
      }
    }
  }
  operations *= static_cast<double>(job.microbatches());
  if (operations > static_cast<double>(kMaxExactOps)) {
    throw Error(fmt::format("the step has about {:.3g} operations", operations))
        .field("--global_batch")
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
  const PipelineSchedule& schedule = pipeline_schedule_named(job.schedule);
  const PipelineShape shape{job.pp, job.vpp, job.microbatches()};
  Families families(layout, job.hsdp_replicas);
  std::vector<OpProgram> programs;
  for (std::int64_t stage = 0; stage < job.pp; ++stage) {
    StageProgram program(job, plan, time, families, stage);
    programs.push_back(program.build(schedule.order(shape, stage)));
  }
  return workload_of_stages(job, std::move(programs), families.take());
}

}  // namespace lockstep
