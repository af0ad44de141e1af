#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/compare/join_ranks.h"
#include "trace/physical_log.h"

namespace lockstep::compare {

/// Where the time of the ranks' streams goes, seconds a rank and step.
struct StepSplit {
  double compute_s = 0, wait_s = 0, transfer_s = 0, copy_s = 0;
};

/// One kind of operation (kernel, collective) in both runs, seconds a rank and step.
struct OpDifference {
  std::string name;  ///< "embedding (communication)" where a computation is called so, too
  std::size_t first_count = 0, second_count = 0;
  double first_s = 0, second_s = 0;
};

/// The times of a run's steps.
struct StepTimes {
  std::size_t steps = 1;  ///< that the run's sums are divided by
  double step_s = 0;      ///< median of the steps' times, else from first begin to last end a step
};

struct StepComparison {
  std::size_t first_ranks = 0, second_ranks = 0;
  StepTimes first_times, second_times;
  StepSplit first, second;
  std::size_t aligned = 0, left = 0;  ///< operations with and without a counterpart
  std::vector<OpDifference> ops;      ///< the largest difference first
  std::vector<std::string> notes;     ///< what to know of how the figures came about
  Warnings warnings;                  ///< of the logs' readers, for whoever compares to fill in

  /// What a step of the second run takes more than one of the first, as a part of that. Nothing
  /// where the first run tells no times.
  std::optional<double> difference() const {
    return first_times.step_s > 0 ? std::optional(second_times.step_s / first_times.step_s - 1)
                                  : std::nullopt;
  }
};

/// Lays two runs of a step side by side, measured or simulated, each of one or more logs (ranks).
/// The k-th operation of a name and kind on a rank belongs to the k-th of these on the same rank of
/// the other run; collectives whose name the other run does not know, to those of the same
/// operation and size. A communication waits until the last of its ranks (join_ranks) has begun the
/// same one, and transfers from then on; by clocks where one has them all, else, if none leaves
/// before all have come, as long as it took longer than the last one. Where only one rank is known
/// all of it is transfer. Logs that hold the times of steps alone (MLPerf's) are compared by these.
/// ERRORS: a run of neither operations nor steps. O(n log n).
StepComparison compare_steps(const std::vector<PhysicalLog>& first,
                             const std::vector<PhysicalLog>& second);

std::string steps_table(const StepComparison& comparison);
std::string steps_json(const StepComparison& comparison);  ///< "lockstep-compare-steps/1"

}  // namespace lockstep::compare
