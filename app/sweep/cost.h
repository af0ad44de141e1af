#pragma once

#include <cstdint>
#include <vector>

#include "app/sweep/grid.h"

namespace lockstep {

/// Predicts how long points of a grid take, only to begin with the longest: the logarithm of the
/// time is a guess from the flags that say how much work there is (GPUs, layers, steps, the engine)
/// plus, for each axis, what its value was found to add. Learns in O(axes) a point.
class SweepCost {
 public:
  explicit SweepCost(const Grid& grid);

  /// Natural logarithm of the seconds, up to a constant at first.
  double predict(const GridPoint& point) const;
  void learn(const GridPoint& point, double seconds);
  std::int64_t learned() const { return learned_; }

 private:
  struct Mean {
    double sum = 0;
    double count = 0;
  };

  std::vector<std::vector<Mean>> by_place_;  // of each axis and place: the residual
  Mean all_;
  std::int64_t learned_ = 0;
};

}  // namespace lockstep
