#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "planner/job/job_space.h"
#include "topologies/topology.h"

namespace lockstep {

/// The GPUs of one type among those that a plan may use.
struct GpuPool {
  std::string type;
  Bytes memory;  ///< that a plan may use of each
  /// Ranks (places in Topology::gpus()) of each server, in runs of consecutive ones.
  std::vector<std::vector<std::int32_t>> servers;

  std::int64_t gpus() const;
  /// First ranks of as many runs of `width` consecutive ranks as there are: in a server, or, where
  /// that is more than it has, whole servers; those whose GPUs tp does not divide have none.
  std::vector<std::int32_t> slots(std::int64_t width, std::int64_t tp) const;
};

/// The pools of a topology's first `gpus` GPUs, in order of first rank; without memory.
std::vector<GpuPool> gpu_pools(const Topology& topology, std::int64_t gpus);

/// Some pipelines that are cut alike.
struct PipelineForm {
  std::int64_t pipelines = 0;
  std::vector<std::size_t> types;  ///< of each stage: index into pools
  friend bool operator==(const PipelineForm&, const PipelineForm&) = default;
};
/// How slots are shared out among pipelines.
using Division = std::vector<PipelineForm>;

/// Divisions of so many slots of each type:
///
///   one type alone      any number of pipelines, of the same number of stages or one apart
///   each type its own   likewise, for all types
///   across types        so many pipelines with as many stages each of every type, in the order of
///                       the types or the reverse, which use up all
///   both                such pipelines, and own ones on what they leave; only up to
///                       kMostMixedSlots slots
///
/// Beyond kMostMixedSlots slots all pipelines of a type have the same number of stages. No pipeline
/// has more than `most_stages`. Each once, in a fixed order.
inline constexpr std::int64_t kMostMixedSlots = 16;
std::vector<Division> divisions(const std::vector<std::int64_t>& slots, std::int64_t most_stages);

/// "H100 alone", "each type its own pipelines", "pipelines across types", "pipelines across types,
/// and others".
std::string family_of(const Division& division, const std::vector<GpuPool>& pools);

/// How a pipeline's layers fit stages of different speed: of all contiguous splits in which no
/// stage takes longer than `most_s`, and holds no more layers than `most_layers` says, one with the
/// least sum; empty: there is none. `layer_s[t][l]`: of layer l on type t; `before_s`, `after_s`:
/// of what the first and the last stage have besides. O(stages layers^2).
struct SplitProblem {
  std::vector<std::size_t> types;            ///< of each virtual stage
  std::vector<std::vector<double>> layer_s;  ///< by type
  std::vector<double> before_s, after_s;     ///< by type
  std::vector<std::int64_t> most_layers;     ///< by virtual stage
};
std::vector<std::int64_t> split_within(const SplitProblem& problem, double most_s);
/// The least time that the slowest stage can take; infinite: there is no split.
double least_slowest_s(const SplitProblem& problem);
/// What each stage of a split takes.
std::vector<double> stage_times(const SplitProblem& problem,
                                const std::vector<std::int64_t>& layers);

/// Microbatches of each form's pipelines, so that all end as nearly together as whole ones allow:
/// pipelines with slowest stage `slowest_s[f]` and sum `sum_s[f]` end after (m - 1) slowest + sum.
/// Each pipeline's come in multiples of `grain[f]`, and forms may be parted into two, one such
/// multiple apart: result[f] has one or two of (pipelines, microbatches). Empty: they cannot be
/// shared out so. O(forms log microbatches).
using Share = std::vector<std::pair<std::int64_t, std::int64_t>>;
std::vector<Share> share_out(const std::vector<std::int64_t>& pipelines,
                             const std::vector<double>& slowest_s, const std::vector<double>& sum_s,
                             const std::vector<std::int64_t>& grain, std::int64_t microbatches);

}  // namespace lockstep
