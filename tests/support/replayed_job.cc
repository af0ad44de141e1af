#include "tests/support/replayed_job.h"

#include <memory>
#include <utility>

#include "generator/exact/exact_workload.h"
#include "simulator/collectives/choose.h"
#include "simulator/collectives/tune.h"
#include "simulator/network/flow/flow_engine.h"

namespace lockstep::testing {

OperatorTime roofline_of(const Job& job) {
  const auto times = std::make_shared<ComputeTimes>(gpu_spec(job.gpu_type), job.precision);
  return [times](const Operator& op) { return (*times)(op); };
}

StepResult replay_job(const Job& job, const Topology& topology, const OperatorTime& time,
                      const FlowOptions& flow) {
  return replay_workload(exact_workload(job, time), topology, flow);
}

StepResult replay_workload(const Workload& workload, const Topology& topology,
                           const FlowOptions& flow, StepOptions options, bool ranks_alike,
                           bool folds) {
  ScheduleCache schedules;
  if (folds) {
    options.fold = flow;
  }
  return simulate_step(
      workload, topology, [&] { return std::make_unique<FlowEngine>(topology, flow); },
      [&](CommType op, Bytes bytes, const GroupShape& shape) {
        CollectiveRequest request;
        request.op = op;
        request.bytes = bytes;
        TunedRequest tuned = tune(std::move(request), shape, shape.fabric);
        if (ranks_alike) {
          keep_ranks_alike(tuned, shape);
        }
        return schedules.get(tuned.request, shape, tuned.algorithm);
      },
      options);
}

}  // namespace lockstep::testing
