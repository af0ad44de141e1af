#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/serve/live_sliders.h"
#include "app/simulate/simulate_options.h"
#include "app/simulate/step_input.h"
#include "base/json.h"
#include "simulator/replay/kept_step.h"
#include "simulator/replay/step_result.h"

namespace lockstep {

/// A step that is kept in memory, to be simulated again under changed sliders: the workload, the
/// fabric, every schedule of a collective, the folds of the network and what communicators have
/// done stay (kept_step.h); only what a slider touches is computed again, and places of the sliders
/// that were seen are remembered. The answers are those of `lockstep simulate --engine flow` on the
/// changed inputs, to the picosecond.
class LiveModel {
 public:
  /// From the flags of `lockstep simulate`. ERRORS: as it gives; flags of what a live model has
  /// not: other engines, several steps, further simulations, files to be written.
  explicit LiveModel(const std::vector<std::string>& arguments);

  /// The step's time and where it goes, as JSON; `kept` says whether nothing had to be computed.
  /// ERRORS: Error for factors that are not in [0.01, 100], a GPU that is not in the job.
  Json evaluate(const LiveSliders& sliders);
  /// The same with `report`: all that `lockstep simulate --detail --json` tells, as the scripts of
  /// a report's page take it. What stragglers cost is simulated besides, unless the flags say no.
  Json evaluate_with_report(const LiveSliders& sliders);
  /// Does beforehand, while nobody asks, what only first places need: a copy of the workload for
  /// other speeds of the GPUs, and which ranks are alike with `straggler_gpu` slow.
  void prepare(const LiveSliders& sliders);
  /// What evaluate() tells of; `fresh`: without anything kept, as a check.
  StepResult simulate(const LiveSliders& sliders, bool fresh = false);

 private:
  Topology topology_at(const LiveSliders& sliders) const;
  SimulateOptions options_at(const LiveSliders& sliders) const;
  const Workload& workload_at(double gpu_speed);
  Json numbers_of(const LiveSliders& sliders, const StepResult& result) const;

  std::vector<std::string> arguments_;
  SimulateOptions options_;
  StepInput input_;
  Workload scaled_;  // the input's by gpu_speed_
  double gpu_speed_ = 1;
  KeptStep kept_;
  std::map<LiveSliders, Json> seen_;
  std::set<std::int32_t> slow_gpus_;  // that were simulated or prepared
};

}  // namespace lockstep
