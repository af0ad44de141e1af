#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "generator/exact/stage_plan.h"
#include "planner/job/collective_bound.h"

namespace lockstep {

/// Lower bounds of the passes of one unit of a model (a layer, or what is before or after them), in
/// seconds: the longest path through the pass, its computations one after the other, its transfers
/// at least as long as CollectiveBound says.
struct UnitTimes {
  const ModelUnit* unit = nullptr;
  double forward = 0, backward = 0;
  double input = 0, weights = 0;                     ///< the two parts of `backward`
  double compute_forward = 0, compute_backward = 0;  ///< computations alone
};

/// Those of a model's units under one cut.
struct ModelTimes {
  const StagePlan* plan = nullptr;
  UnitTimes before, after;        ///< unit is nullptr where there is none
  std::vector<UnitTimes> blocks;  ///< a layer of each
  std::vector<std::int64_t> block_end;

  /// The units of a chunk in forward order.
  std::vector<const UnitTimes*> units(const ModelChunk& chunk) const;
};

/// Works them out once for jobs that are cut alike. Not for two threads at once.
class UnitTimesCache {
 public:
  /// `time` prices operators; `bounds` must outlive this. `compute`: how much faster the GPU is.
  UnitTimesCache(OperatorTime time, CollectiveBound& bounds, double compute);

  /// PRECONDITION: check_job(job); all jobs have one model and differ only in how they are cut and
  /// in batch, recomputation and schedule. The reference stays valid.
  const ModelTimes& of(const Job& job);
  /// The same, its groups those of another layout of the same tp, cp and ep.
  const ModelTimes& of(const Job& job, const RankLayout& layout);
  double time_s(const Operator& op) const { return time_(op).seconds() / compute_; }

 private:
  UnitTimes unit_times(const ModelUnit* unit, const RankLayout& layout);
  double path_s(const FoldedPass& pass, const RankLayout& layout);

  OperatorTime time_;
  CollectiveBound& bounds_;
  double compute_;
  std::map<std::string, std::unique_ptr<StagePlan>> plans_;
  std::map<std::string, ModelTimes> known_;
};

}  // namespace lockstep
