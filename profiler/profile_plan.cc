#include "profiler/profile_plan.h"

#include <algorithm>
#include <set>

#include "generator/compute/roofline.h"
#include "generator/exact/exact_workload.h"
#include "profiler/job_kernels.h"

namespace lockstep {
namespace {

std::map<Kernel, std::int64_t> times_in_step(const Job& job, const JobKernels& kernels) {
  const std::int64_t batches = job.microbatches();
  std::map<Kernel, std::int64_t> times;
  const auto count = [&](std::span<const Module> modules, std::int64_t layers) {
    for (const auto& pass : {kernels.forward(modules), kernels.backward(modules)}) {
      for (const Kernel& kernel : pass) {
        times[kernel] += layers * batches;
      }
    }
  };
  count(job.model.before, 1);
  for (const LayerBlock& block : job.model.blocks) {
    count(block.modules, std::max<std::int64_t>(1, block.layers / job.pp));
  }
  count(job.model.after, 1);
  return times;
}

}  // namespace

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
    if (!is_all_in_its_key(op)) {
      plan.not_measured.insert(op.name);
      return Time::us(1);
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
  const std::map<Kernel, std::int64_t> times = times_in_step(job, kernels);
  for (const Kernel& kernel : plan.kernels) {
    const auto found = times.find(kernel);
    plan.times.push_back(found == times.end() ? 1 : found->second);
  }
  return plan;
}

}  // namespace lockstep
