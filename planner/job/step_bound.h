#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "generator/job.h"
#include "planner/job/unit_times.h"
#include "topologies/topology.h"

namespace lockstep {

/// What a step takes at least.
struct StepFloor {
  double step_s = 0;
  double compute_s = 0;  ///< computations of a rank, the mean of all; no bound, but exact
  /// No bound either: the step if nothing that copies exchange were hidden behind its passes.
  double unhidden_s = 0;
};

struct ChunkPiece {
  std::size_t stage = 0, chunk = 0, piece = 0;
};

/// What the stages of a job take, each where it runs: lower bounds, in seconds.
class StageCosts {
 public:
  virtual ~StageCosts() = default;
  virtual const ModelTimes& model(std::size_t stage) = 0;
  virtual double time_s(std::size_t stage, const Operator& op) = 0;
  /// To hand bytes on to the next stage.
  virtual double send_s(std::size_t stage, Bytes bytes) = 0;
  /// Of the ranks that hold the same dense parameters (or experts) of a piece of a chunk; with
  /// `replicas` those that cut the dense ones among each other.
  virtual double copies_s(const ChunkPiece& where, bool expert, CommType comm, Bytes bytes,
                          std::int64_t replicas) = 0;
  /// Where a chunk falls into pieces (reduction.h).
  virtual std::span<const std::size_t> cuts(std::size_t stage, std::size_t chunk) const = 0;
};

/// Of a pipeline with more microbatches the passes are summed, not walked through one by one: a
/// bound less tight by what the stages wait for each other in between: thousandths there, and more
/// where stages differ and passes of one chunk come together (GPipe, interleaving).
inline constexpr std::int64_t kMostWalked = 4096;

/// What StepBound::of() is, on stages with these costs. PRECONDITION: check_job(job); no
/// schedule with passes side by side.
StepFloor step_floor(const Job& job, StageCosts& costs, std::int64_t most_walked = kMostWalked);

/// Lower bounds on the time of a step as the replay would find it: the replay's own graph with one
/// rank a stage and every transfer as short as it could be (CollectiveBound).
///
///   pass           its units one after the other (UnitTimes); with ZeRO-3 a unit starts when its
///                  parameters, gathered one unit ahead, could be there
///   stage          its passes in the order of the schedule, each after its input could come
///   gradients      buckets one after the other, each after the last pass that completes it
///   end            of all stages, since the norm of the gradients couples them; then the norm's
///                  and the optimizer's memory traffic
///
/// All of it is sums and maxima of lower bounds, in which no rank can be ahead of the one it is
/// about, so the result is one too. Left out, at 0: sums of a few bytes, tied embeddings, fp8's
/// scales, the host. Schedules with passes side by side have the bound of busy_s() alone.
class StepBound {
 public:
  /// `topology` must outlive it. Jobs: as UnitTimesCache::of(). Not for two threads at once.
  StepBound(const Topology& topology, OperatorTime time, const Speeds& speeds = {});
  StepBound(const StepBound&) = delete;
  StepBound& operator=(const StepBound&) = delete;

  /// O(passes of all stages), or where they are not walked through O(virtual stages).
  /// PRECONDITION: check_job(job).
  StepFloor of(const Job& job, std::int64_t most_walked = kMostWalked);
  /// The passes of a mean stage alone, of schedules with passes side by side their computations:
  /// what any choice of ZeRO, interleaving and layers a stage takes. O(1) for jobs that are cut
  /// alike.
  double busy_s(const Job& job);

 private:
  CollectiveBound bounds_;
  UnitTimesCache units_;
};

}  // namespace lockstep
