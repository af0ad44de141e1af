#include "simulator/replay/step_programs.h"

#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/error.h"
#include "simulator/replay/op_table_program.h"
#include "simulator/replay/step_simulation.h"

namespace lockstep {

StepPrograms StepPrograms::of(const Workload& workload, std::int64_t gpus,
                              const StepOptions& options) {
  const bool strict = options.simai_flavour;
  StepPrograms compiled;
  std::vector<RankPrograms> parts;
  std::int32_t first_rank = 0;
  for (const WorkloadJob& source : workload.jobs) {
    StepJob job{&source, first_rank, 0, {}};
    Parallelism parallel = source.parallel;
    if (parallel.gpus == 0 || (options.all_gpus && workload.jobs.size() == 1)) {
      parallel.gpus = gpus - first_rank;
    }
    if (parallel.gpus > gpus - first_rank) {
      throw Error(fmt::format("the topology has {} GPUs, but the workload needs {}", gpus,
                              first_rank + parallel.gpus))
          .field(source.name)
          .hint("take a larger topology, or a workload made for fewer GPUs");
    }
    if (const auto* table = std::get_if<LayerTable>(&source.work)) {
      parallel.pp = strict ? 1 : parallel.pp;
      SimaiProgram program = simai_program(*table, parallel, {.strict = strict});
      job.layers = std::move(program.layers);
      parts.push_back(std::move(program.ranks));
    } else {
      parts.push_back(op_table_program(std::get<OpTable>(source.work), parallel.gpus));
    }
    job.ranks = parts.back().ranks();
    first_rank += job.ranks;
    compiled.jobs.push_back(std::move(job));
  }
  compiled.work = side_by_side(std::move(parts));
  return compiled;
}

bool StepPrograms::retime(const Workload& workload) {
  if (jobs.size() != 1 || workload.jobs.size() != 1) {
    return false;
  }
  const auto* table = std::get_if<OpTable>(&workload.jobs.front().work);
  if (table == nullptr || !take_computations(*table, work)) {
    return false;
  }
  jobs.front().source = &workload.jobs.front();
  return true;
}

}  // namespace lockstep
