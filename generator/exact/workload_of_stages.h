#pragma once

#include <vector>

#include "generator/job.h"
#include "workloads/workload.h"

namespace lockstep {

/// The workload of a job whose ranks of one stage share a program. `programs`: one a stage, without
/// its ranks. PRECONDITION: check_job(job).
Workload workload_of_stages(const Job& job, std::vector<OpProgram> programs,
                            std::vector<GroupFamily> groups);

}  // namespace lockstep
