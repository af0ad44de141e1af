#pragma once

#include "generator/compute/compute_times.h"
#include "generator/exact/folded_pass.h"
#include "generator/job.h"
#include "simulator/network/flow/flow_options.h"
#include "simulator/replay/step_result.h"
#include "simulator/replay/step_simulation.h"
#include "topologies/topology.h"
#include "workloads/workload.h"

namespace lockstep::testing {

/// The roofline of the job's GPU.
OperatorTime roofline_of(const Job& job);

/// A workload's step on the flow engine with the collectives that NCCL would choose, every rank.
/// `ranks_alike`: with what `simulate` takes in place of some of them
/// (simulator/collectives/tune.h). `folds`: by symmetry where it can be.
StepResult replay_workload(const Workload& workload, const Topology& topology,
                           const FlowOptions& flow = {}, StepOptions options = {},
                           bool ranks_alike = false, bool folds = true);

/// A job's step likewise.
StepResult replay_job(const Job& job, const Topology& topology, const OperatorTime& time,
                      const FlowOptions& flow = {});

}  // namespace lockstep::testing
