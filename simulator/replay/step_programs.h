#pragma once

#include <cstdint>
#include <vector>

#include "simulator/replay/program.h"
#include "simulator/replay/simai_program.h"
#include "workloads/workload.h"

namespace lockstep {

struct StepOptions;

/// A job of a step: its ranks, and the layers' operations where it is a layer table.
struct StepJob {
  const WorkloadJob* source = nullptr;  ///< of the workload that was compiled last
  std::int32_t first_rank = 0, ranks = 0;
  std::vector<LayerOps> layers;
};

/// A workload compiled to programs, its jobs side by side.
struct StepPrograms {
  std::vector<StepJob> jobs;
  RankPrograms work;

  /// ERRORS: Error when there are too few GPUs, and those of the jobs' own compilers.
  static StepPrograms of(const Workload& workload, std::int64_t gpus, const StepOptions& options);
  /// Takes the computation times of a workload in which nothing else is different from the one that
  /// was compiled. False where that cannot be done: then it is to be compiled anew. O(operations).
  bool retime(const Workload& workload);
};

}  // namespace lockstep
