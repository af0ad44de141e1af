#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/serve/live_sliders.h"
#include "app/simulate/simulate_options.h"
#include "base/json.h"
#include "simulator/replay/kept_step.h"
#include "simulator/replay/step_result.h"
#include "topologies/topology.h"
#include "workloads/workload.h"

namespace lockstep {

/// A step that is kept in memory, to be simulated again under changed sliders: the workload, the
/// fabric, every schedule of a collective, the folds of the network and what communicators have
/// done stay (kept_step.h); only what a slider touches is computed again, and places of the sliders
/// that were seen are remembered. The answers are those of `lockstep simulate --engine flow` on the
/// changed inputs, to the picosecond.
class LiveModel {
 public:
  /// From the flags of `lockstep simulate`. ERRORS: as it gives.
  explicit LiveModel(const std::vector<std::string>& arguments);

  /// The step's time and where it goes, as JSON; `kept` says whether nothing had to be computed.
  /// ERRORS: Error for factors that are not in [0.01, 100], a GPU that is not in the job.
  Json evaluate(const LiveSliders& sliders);
  /// What evaluate() tells of; `fresh`: without anything kept, as a check.
  StepResult simulate(const LiveSliders& sliders, bool fresh = false);

 private:
  const Workload& workload_at(double gpu_speed);

  SimulateOptions options_;
  Workload workload_, scaled_;  // scaled_: by gpu_speed_
  double gpu_speed_ = 1;
  Topology topology_;
  KeptStep kept_;
  std::map<LiveSliders, Json> seen_;
};

}  // namespace lockstep
