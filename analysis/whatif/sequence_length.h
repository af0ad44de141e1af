#pragma once

#include <span>
#include <vector>

#include "analysis/whatif/op_table.h"

namespace lockstep::whatif {

struct Outlier;

/// How the forward and backward times of the same microbatch go together. Long sequences make both
/// slow (attention is quadratic), a slow worker makes all its own slow; so each worker's mean, by
/// chunk, is taken off first.
struct SequenceLengthSign {
  double correlation = 0;  ///< Pearson's r of the residuals; 0 if one side does not vary
  double pooled = 0;       ///< r without taking the means off: confounded, for comparison
  double forward_cv = 0;   ///< standard deviation of the forward residuals / mean forward time
  /// r of a worker's forward residuals with the mean of those of its dp_rank's others (stages,
  /// tensor- and context-parallel ranks) for the same microbatch, which have the same sequences:
  /// one worker that varies alone has other reasons. 1 where a dp_rank is one worker.
  double shared = 1;
};

/// Source: Wu et al., OSDI '25, section 5.3, which pools over the workers; the de-meaned form and
/// the variation are ours. `steps`: indices of the steps to look at; empty: all. Outlying passes
/// are taken without their excess; by node and lane.
SequenceLengthSign sequence_length_sign(const OpTable& table, const std::vector<std::size_t>& steps,
                                        std::span<const Outlier> outliers = {});

/// Whether lengths are uneven by it: r >= 0.9 (section 5.3), forward times vary by 5 %, and half of
/// it is shared.
bool shows_sequence_length(const SequenceLengthSign& sign);

}  // namespace lockstep::whatif
