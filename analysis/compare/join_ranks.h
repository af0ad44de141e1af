#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/physical_log.h"

namespace lockstep::compare {

/// One operation of one of the logs of a run.
struct OpPlace {
  std::size_t log = 0, op = 0;
};

/// Operations of several ranks that are one collective, or one message.
struct JoinedOp {
  std::vector<OpPlace> members;  ///< two or more, a rank each
  bool everyone_waits = true;    ///< no rank leaves before all have come
};

struct JoinedRun {
  std::vector<JoinedOp> joined;
  std::size_t alone = 0;       ///< communications that no other rank's could be found for
  std::size_t rank_steps = 0;  ///< pairs of a rank and a step of its that the logs hold
  std::vector<double> zero_s;  ///< of each log's clock, on that of the run
  std::vector<std::string> notes;
};

/// Finds which communications of a run's ranks are the same collective or message, and lays the
/// logs' clocks over each other.
///
/// Same are those that a log says are (OpRow::occurrence); else, among the ranks of one group (name
/// and ranks) and in one step, the k-th of an operation on each rank, where all have equally many.
/// Send/receives only in groups of two. Where a group's name stands for several groups (more ranks
/// use it than it has), or nothing tells a group but that it has not all ranks of the run (then the
/// k-th of each stream), ranks whose collectives end together are taken to be one (common_ends.h).
///
/// Ranks leave a collective together: the median difference of the ends of two logs' common ones is
/// how far their clocks are apart. From the first log on, clocks of logs with common collectives
/// are set over each other if they are more than 20 us apart; less is what ends differ by anyway.
/// O(n log n). ERRORS: two logs of one rank in one step.
JoinedRun join_ranks(const std::vector<PhysicalLog>& logs);

/// In place of what each rank measured of a collective, waiting included, once for each collective
/// that ranks of several logs were in, what the last one did: the shortest time of the ranks; of
/// what not everyone waits for, from when the last one came to when the last one left.
/// Logs without times that include waiting are of no run and stay as they are. Returns how many
/// there are. ERRORS: those of join_ranks.
std::size_t take_last_arrivals(std::vector<PhysicalLog>& logs);

}  // namespace lockstep::compare
