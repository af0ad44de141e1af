#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/workload.h"

namespace lockstep {

/// What some ranks communicate in one way, for one rank.
struct CommSummary {
  CommType comm = CommType::kNone;
  std::string group;       ///< kind or family of the group; "to peers", "from peers"
  std::int64_t count = 0;  ///< operations
  double bytes = 0;        ///< sum of their sizes; a double, for sums beyond 2^63
  friend bool operator==(const CommSummary&, const CommSummary&) = default;
};

/// What each of some ranks does in a step.
struct RankSummary {
  std::int64_t ranks = 0;          ///< how many do this; 0 where the workload does not say
  std::string who;                 ///< "all ranks", "ranks 0 to 7 by 2, 9"
  std::int64_t items = 0;          ///< layers or operations
  double compute_s = 0;            ///< sum of compute times, as if they never overlapped
  std::vector<CommSummary> comms;  ///< by type, then group
  friend bool operator==(const RankSummary&, const RankSummary&) = default;
};

struct JobSummary {
  std::string name;
  Parallelism parallel;
  bool rank_by_rank = false;  ///< an OpTable: items are operations
  std::vector<RankSummary> ranks;
  friend bool operator==(const JobSummary&, const JobSummary&) = default;
};

/// Sums up each job: O(size of the workload). Communications of type kNone are left out, whatever
/// size stands there. PRECONDITION: validate() accepts the workload.
std::vector<JobSummary> summarize(const Workload& workload);

/// The summary for people. Of the programs of a job the first ten are shown.
std::string describe(const Workload& workload);

}  // namespace lockstep
