#include "profiler/profile_plan.h"

#include <algorithm>
#include <set>

#include "generator/compute/roofline.h"
#include "generator/exact/exact_workload.h"
#include "profiler/job_kernels.h"

namespace lockstep {

ProfilePlan plan_profile(const Job& job) {
  const JobKernels kernels(job);
  ProfilePlan plan;
  std::set<Kernel> known;
  const auto add = [&](const Kernel& kernel) {
    if (known.insert(kernel).second) {
      plan.kernels.push_back(kernel);
    }
  };
  const auto record = [&](const Operator& op) {
    if (!has_work(op)) {
      return Time();
    }
    const Kernel kernel = kernels.of(op);
    PlannedOperator& planned = plan.operators[key_of(op, precision_of(op, job.precision))];
    if (planned.kernels.empty()) {
      planned.name = op.name;
    }
    if (std::ranges::find(planned.kernels, kernel) == planned.kernels.end()) {
      planned.kernels.push_back(kernel);
    }
    add(kernel);
    return Time::us(1);  // of no matter: only what is asked for counts
  };
  (void)exact_workload(job, record);
  plan.aiob = aiob_parts(job);
  for (const AiobPart& part : plan.aiob) {
    for (const Kernel& kernel : part.kernels) {
      add(kernel);
    }
  }
  return plan;
}

}  // namespace lockstep
