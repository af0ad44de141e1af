#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "generator/exact/mixed_job.h"
#include "planner/job/mixed_space.h"
#include "planner/job/step_bound.h"

namespace lockstep {

/// StepBound for jobs whose pipelines differ: the bound of each kind of pipeline, its stages at the
/// speed of their GPUs, its transfers as short as they could be from where its ranks are, its
/// gradients summed over the ranks that hold the same layers; the slowest kind is the step. What a
/// kind waits for another's gradients is left out.
class MixedBound {
 public:
  /// `topology` must outlive it. `times`: of operators, by pool. `compute`: how much faster each
  /// pool's GPUs are; empty: as they are. Not for two threads at once.
  MixedBound(const Topology& topology, std::vector<GpuPool> pools, std::vector<OperatorTime> times,
             const Speeds& speeds = {}, std::vector<double> compute = {});

  /// O(passes of all stages + ranks). PRECONDITION: check_mixed(mixed); GPU type t is pool t, and
  /// stages are on its slots().
  StepFloor of(const MixedJob& mixed);

  /// The units of a job's model on a pool. PRECONDITION: check_job(job); `stage`: as
  /// stage_layout().
  const ModelTimes& units(std::size_t pool, const RankLayout& stage, const Job& job);
  double time_s(std::size_t pool, const RankLayout& stage, const Operator& op);
  CollectiveBound& bounds() { return all_; }

 private:
  /// A pool cut into slots, each a stage's ranks.
  struct Ground {
    Ground(const Topology& topology, const std::vector<NodeId>& gpus, RankLayout stage,
           OperatorTime time, const Speeds& speeds);
    CollectiveBound bounds;
    UnitTimesCache cache;
    RankLayout layout;
  };
  using GroundKey =
      std::tuple<std::size_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
  Ground& ground(std::size_t pool, const RankLayout& stage);

  const Topology& topology_;
  std::vector<GpuPool> pools_;
  std::vector<OperatorTime> times_;
  Speeds speeds_;
  std::vector<double> compute_;
  CollectiveBound all_;
  std::map<GroundKey, std::unique_ptr<Ground>> grounds_;
};

}  // namespace lockstep
