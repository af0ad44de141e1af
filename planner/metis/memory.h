#pragma once

#include <vector>

#include "planner/metis/cost.h"

namespace lockstep::metis {

/// Metis's estimate of the memory that the layers of a stage need, in MB: one list a group of
/// ranks, of which the stage takes the largest sum. Its room is that of all its GPUs.
///
/// Strict is as Metis: by the profiles of the first type of the plan's order, whatever the stage is
/// on; a stage on several types takes the sum of the groups that it would have if it were on all
/// servers; a GPU has the memory of the first of its type in the clusterfile. Fixed goes by the
/// GPUs that the stage is on, of which the group that needs the most counts.
class StageMemory {
 public:
  StageMemory(const Problem& problem, const std::vector<Rank>& ranks, int first, int gpus,
              Strategy strategy, std::int64_t batches);
  /// Whether the profiles that the estimate needs are there.
  bool known() const { return !groups_.empty(); }
  double room_mb() const { return room_; }
  /// Of the layers [begin, end).
  double demand_mb(std::int64_t begin, std::int64_t end) const;

 private:
  std::vector<std::vector<double>> groups_;
  double room_ = 0;
};

}  // namespace lockstep::metis
