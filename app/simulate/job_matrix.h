#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/units.h"
#include "workloads/workload.h"

namespace lockstep {

/// How jobs that share a fabric slow each other down.
struct JobMatrix {
  std::vector<std::string> names;
  std::vector<Time> alone;                ///< a step of each job with the others' GPUs idle
  std::vector<Time> together;             ///< with all jobs
  std::vector<std::vector<Time>> beside;  ///< [job][other]: with that other alone; on the diagonal
                                          ///< `alone`
};

/// Runs each job alone, each pair and all together, every job on the GPUs that it has among all: n
/// jobs take n (n + 1) / 2 + 1 runs, two jobs 3. `run` gives when each job of a workload ends and
/// is called on `threads` threads (0: one a core); the result does not depend on how many.
/// `gpus`: how many the cluster has, for a last job that does not say how many it takes.
/// ERRORS: Error where there is one job only, or a job before the last does not say its GPUs.
JobMatrix job_matrix(const Workload& workload, std::int64_t gpus, int threads,
                     const std::function<std::vector<Time>(const Workload&)>& run);

/// Slowdowns, a row a job and a column for each that it runs beside; and its JSON.
std::string job_matrix_text(const JobMatrix& matrix);
Json job_matrix_json(const JobMatrix& matrix);

}  // namespace lockstep
