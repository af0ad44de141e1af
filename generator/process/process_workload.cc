#include "generator/process/process_workload.h"

#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "generator/exact/workload_of_stages.h"
#include "generator/process/process_program.h"
#include "workloads/validate.h"

namespace lockstep {

ProcessWorkload process_workload(const Job& job, const OperatorTime& time, const Process& process,
                                 bool with_init, std::int64_t max_ops) {
  check_job(job);
  const StagePlan plan(job, time);
  Families families(layout_of(job), job.hsdp_replicas);
  const PipelineSchedule& schedule = pipeline_schedule_named(job.schedule);
  if (schedule.splits_backward || schedule.side_by_side) {
    throw Error(
        fmt::format("a process has whole passes, one after the other, which schedule {} has not",
                    schedule.name))
        .field("--schedule")
        .expected("1f1b or gpipe");
  }
  const PipelineShape shape{job.pp, job.vpp, job.microbatches()};
  ProcessWorkload result;
  std::vector<OpProgram> programs;
  for (std::int64_t stage = 0; stage < job.pp; ++stage) {
    ProcessProgram program(job, plan, time, families, process, stage, {max_ops, 4 * max_ops});
    programs.push_back(program.build(schedule.order(shape, stage), with_init));
    max_ops -= static_cast<std::int64_t>(programs.back().ops.size());
    result.init_ops.push_back(program.init_ops());
  }
  result.workload = workload_of_stages(job, std::move(programs), families.take());
  // Items may send what nobody receives, or call collectives on some stages of a group only.
  with_context(fmt::format("while checking what the process '{}' makes the ranks do",
                           printable(process.name)),
               [&] { validate(result.workload); });
  return result;
}

}  // namespace lockstep
