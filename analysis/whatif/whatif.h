#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/whatif/metrics.h"
#include "trace/job_meta.h"

namespace lockstep::whatif {

/// The three ways a slowdown is taken apart.
struct Decompositions {
  Decomposition by_dp_rank, by_stage, by_optype;
};

/// What StragglerAnalysis writes of a trace as result-NAME.json.
struct Result {
  JobMeta meta;
  std::vector<std::int64_t> steps;                   ///< ascending
  std::vector<float> step_t_base;                    ///< B, seconds
  std::vector<double> step_t_nodelay, step_t_noblk;  ///< F(nodelay), F(ideal), seconds
  double launch_slowdown = 1;                        ///< <B> / <E(nodelay)>
  double blocking_slowdown = 1;                      ///< S
  std::vector<double> blocking_step_slowdown, launch_step_slowdown;
  std::optional<Decompositions> blocking, launch;  ///< absent below the threshold
  /// Whether some steps of the trace were picked: then the decompositions per step are listed in
  /// another order.
  bool picked_steps = false;
};

struct ResultOptions {
  double decompose_threshold = 1.03;  ///< slowdowns below it are not taken apart
  bool picked_steps = false;
};

/// All three ways, whatever the slowdown.
Decompositions take_apart(const Scene& scene);

/// `blocking`: what take_apart gives.
Result make_result(const Scene& scene, const JobMeta& meta, const Decompositions& blocking,
                   const ResultOptions& options);

/// The artifact's three documents, to the byte.
std::string result_json(const Result& result);
/// `name`: "Ms" or "Mw", the last key, which repeats the share `rem`.
std::string contribution_json(const Contribution& contribution, const std::string& name);

}  // namespace lockstep::whatif
