#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "planner/metis/stage_option.h"

namespace lockstep::metis {

/// What a plan takes at least from a cut on, whatever comes behind it.
///
/// For limits T_0 < T_1 < … on the slowest stage, a backward pass over (GPUs used, layers done)
/// finds the least sum S_k of the stages behind, each of at most T_k, with what they send and the
/// last one's synchronisation. Of a plan whose stages in front take at most t, the slowest takes
/// more than T_(k-1) and at most T_k for one of the k with T_k >= t. So all of its stages behind,
/// and the (batches - 1) turns of its slowest, take at least
///
///     min over these k of  (batches - 1) max(t, T_(k-1)) + S_k
///
/// What optimizers and gradients take is not in it. Limits lie 4 % apart.
/// Complexity: O(GPUs * options * layers^2 * limits) once; left() O(limits).
class Outlook {
 public:
  /// `options` by first GPU; `ranks` and `options` are not kept.
  Outlook(const Problem& problem, const std::vector<Rank>& ranks,
          const std::vector<std::vector<StageOption>>& options, std::int64_t batches);

  /// In ms; infinite if nothing fits behind. `slowest` is of the stages in front.
  double left(int used, std::int64_t done, double slowest) const;
  /// Stages of all GPUs and layers with the least sum within each limit: plans to beat. Each once.
  std::vector<Plan> plans(const std::vector<std::vector<StageOption>>& options) const;
  /// Whether some stage could hold fewer layers than there are.
  bool short_of_memory() const { return short_of_memory_; }

 private:
  struct Edge {  ///< what a stage that ends there sends, at least
    double to_layer = 0, to_head = 0;
  };
  std::size_t at(int used, std::int64_t done) const;
  std::size_t first_limit(double time) const;
  std::pair<std::size_t, std::int64_t> best_stage(const std::vector<StageOption>& options, int used,
                                                  std::int64_t done, std::size_t limit) const;
  double least_bottleneck(const std::vector<std::vector<StageOption>>& options);

  int gpus_;
  std::int64_t layers_, batches_;
  bool short_of_memory_ = false;
  std::vector<double> limits_;            ///< the last one infinite
  std::vector<std::vector<Edge>> edges_;  ///< of each option
  std::vector<double> sums_;              ///< [used][done][limit]
};

}  // namespace lockstep::metis
