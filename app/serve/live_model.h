#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/simulate/simulate_options.h"
#include "base/json.h"
#include "simulator/replay/kept_step.h"
#include "simulator/replay/step_result.h"
#include "topologies/topology.h"
#include "workloads/workload.h"

namespace lockstep {

/// How a step is changed while one looks at it. All 1: as it was loaded.
struct LiveSliders {
  double nvlink_bandwidth = 1, network_bandwidth = 1;  ///< factors of every link's rate
  double latency = 1;    ///< factor of every link's delay and of the transfers' software time
  double gpu_speed = 1;  ///< all computation takes so many times less
  double straggler = 1;  ///< computation on one GPU takes so many times longer
  std::int32_t straggler_gpu = 0;

  friend auto operator<=>(const LiveSliders&, const LiveSliders&) = default;
};

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

/// The sliders in a JSON object; absent ones are 1. ERRORS: unknown keys, values out of range.
LiveSliders sliders_of(const Json& json);

}  // namespace lockstep
