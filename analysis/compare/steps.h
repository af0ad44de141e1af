#pragma once

#include <string>
#include <vector>

#include "trace/physical_log.h"

namespace lockstep::compare {

/// Where the time of the ranks' streams goes, seconds a rank.
struct StepSplit {
  double compute_s = 0, wait_s = 0, transfer_s = 0, copy_s = 0;
};

/// One kind of operation (kernel, collective) in both runs, seconds a rank.
struct OpDifference {
  std::string name;
  std::size_t first_count = 0, second_count = 0;
  double first_s = 0, second_s = 0;
};

struct StepComparison {
  std::size_t first_ranks = 0, second_ranks = 0;
  StepSplit first, second;
  std::size_t aligned = 0, left = 0;  ///< operations with and without a counterpart
  std::vector<OpDifference> ops;      ///< the largest difference first
};

/// Lays two runs of a step side by side, measured or simulated, each of one or more logs (ranks).
/// The k-th operation of a name on a rank belongs to the k-th of that name on the same rank of the
/// other run. A communication waits until the last of its ranks has begun the same one (the k-th of
/// that name on each rank, where all have equally many), and transfers from then on; where only one
/// rank is known all of it is transfer. Clocks of the logs of a run must be those of one host.
/// O(n log n).
StepComparison compare_steps(const std::vector<PhysicalLog>& first,
                             const std::vector<PhysicalLog>& second);

std::string steps_table(const StepComparison& comparison);
std::string steps_json(const StepComparison& comparison);  ///< "lockstep-compare-steps/1"

}  // namespace lockstep::compare
