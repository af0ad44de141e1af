#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/whatif/metrics.h"
#include "analysis/whatif/remedies.h"

namespace lockstep::whatif {

/// A single pass that took far longer than those of its stage, kind and chunk, than the worker's
/// own others in the step, and than the other passes of its microbatch; or one worker's optimizer
/// or clipping.
struct Outlier {
  std::uint32_t node = 0;
  std::size_t lane = 0;
  double excess_s = 0;  ///< over their median, or over the worker's own if that is longer
};

struct OutlyingPasses {
  std::vector<Outlier> outliers;  ///< by node and lane
  /// Passes beyond two thirds of the limit: of noise, which thins out, there are more than
  /// outliers.
  std::size_t nearly = 0;
  /// They are pauses that move over the workers: more than `nearly`; in several steps, where there
  /// are; and on as many workers as they would be if all were paused alike, not on one or a few
  /// again and again (0.6 of it at least, as so few may fall unevenly; no worker has more than
  /// three quarters). The outliers are then also those that a tenth of a pause makes longer.
  bool moving = false;
};

/// Passes longer than the median + max(100 ms, 6 MAD), some four standard deviations. A worker that
/// is slow throughout a step has none, as its own passes are alike; nor has a long sequence, which
/// makes forward and backward passes longer alike. Expected O(passes).
OutlyingPasses outlying_passes(const Scene& scene);

/// Takes the excess of those of a node off its values, which begin with lane `first`. `outliers`:
/// by node and lane.
void take_off(std::span<const Outlier> outliers, std::uint32_t node, std::size_t first,
              std::span<double> values);

/// What pauses of single workers, as of garbage collection, cost a job: they are seen as outlying
/// passes.
struct Pauses {
  std::vector<Outlier> outliers;
  bool moving = false;      ///< over the workers
  std::size_t workers = 0;  ///< that have any
  double typical_s = 0;     ///< the median excess
  StepTimes without;        ///< T with none of them
  /// By step, the lower median over the workers: what all lose alike, and would at once, too.
  std::vector<double> shared_s;
  Remedy planned;  ///< all pause together

  std::span<const Outlier> if_moving() const {
    return moving ? std::span<const Outlier>(outliers) : std::span<const Outlier>();
  }
};
/// Two simulations; none where no pass is outlying.
Pauses find_pauses(const Scene& scene);

}  // namespace lockstep::whatif
