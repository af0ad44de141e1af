#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "generator/exact/memory.h"
#include "planner/job/mixed_bound.h"
#include "planner/job/mixed_cuts.h"

namespace lockstep {

/// A split of a pipeline's layers that fits its GPUs.
struct PipelineFit {
  std::vector<std::int64_t> layers;  ///< of each virtual stage
  std::vector<double> stage_s;       ///< a microbatch on each stage, all its chunks
  std::vector<double> first_s;       ///< of its first chunk
  double slowest_s = 0, sum_s = 0;
  std::int64_t chunks = 1;

  /// When a pipeline ends m microbatches, about: all but the first of the slowest stage, and the
  /// first through all, of which chunks hide a part.
  double end_s(std::int64_t m) const { return fill_s() + static_cast<double>(m - 1) * slowest_s; }
  double fill_s() const { return slowest_s + (sum_s - slowest_s) / static_cast<double>(chunks); }
  /// Where its first m microbatches cannot have ended: on each stage, after all its passes and, of
  /// the first and the last microbatch, those of the first chunks of the stages before.
  double busy_s(std::int64_t m) const;
};

/// The stages of a pipeline: of each the pools that it may be on, all of which must hold it, and
/// the slowest of which is counted.
using StagePools = std::vector<std::vector<std::size_t>>;

/// Fits layers to stages, and remembers what it found. Not for two threads at once.
class PipelineFits {
 public:
  /// Both must outlive it.
  PipelineFits(const MixedProblem& problem, MixedBound& bound);

  /// Splits over these stages, the one with the fastest slowest stage first; none where nothing
  /// fits. `pipelines`: of the plan. The reference stays valid.
  /// O(stages layers^2) for each of a few splits.
  const std::vector<PipelineFit>& of(std::size_t id, const MixedCut& cut, const StagePools& stages,
                                     std::int64_t pipelines);
  /// The same layers where stages are on these pools.
  PipelineFit on(const MixedCut& cut, const std::vector<std::size_t>& types,
                 std::vector<std::int64_t> layers);

  /// A lower bound of what a type's GPUs take for their part of a microbatch's work, whichever part
  /// that is: share(layers) / rate, where shares of all layers add up to one. By pool.
  const std::vector<double>& rates(const MixedCut& cut, bool several_stages);
  /// What a job's units hold, whatever its stages.
  const ModelMemory& memory(const MixedCut& cut, const Job& job);

 private:
  SplitProblem split_problem(const MixedCut& cut, const StagePools& stages, const Job& job);
  const std::vector<std::int64_t>& split(const MixedCut& cut, const StagePools& stages,
                                         const SplitProblem& problem, double slack);
  bool shorten(SplitProblem& split, const StagePools& stages,
               const std::vector<std::int64_t>& layers, Job& job, const ModelMemory& memory) const;
  void fit(const MixedCut& cut, const StagePools& stages, std::int64_t pipelines,
           std::vector<PipelineFit>& fits);

  const MixedProblem& problem_;
  MixedBound& bound_;
  std::int64_t layers_;
  std::map<std::tuple<std::size_t, std::int64_t, StagePools>, std::vector<PipelineFit>> fits_;
  using SplitKey =
      std::tuple<std::size_t, std::int64_t, StagePools, std::vector<std::int64_t>, double>;
  std::map<SplitKey, std::vector<std::int64_t>> splits_;
  std::map<std::tuple<std::size_t, std::int64_t, bool>, std::vector<double>> rates_;
  std::map<std::pair<std::size_t, bool>, ModelMemory> memory_;
};

/// A cut's job on pipelines of so many stages. With its model. PRECONDITION: at least one stage.
Job job_on(const MixedProblem& problem, const MixedCut& cut, std::int64_t stages,
           std::int64_t pipelines);

}  // namespace lockstep
