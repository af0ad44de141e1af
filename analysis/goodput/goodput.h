#pragma once

#include <cstdint>
#include <vector>

#include "analysis/goodput/interval.h"

namespace lockstep {

/// A job that trains for weeks on machines that fail. Times in seconds.
struct LongRun {
  std::vector<double> steps_s;  ///< times that a step is drawn from; at least one, all > 0
  double tokens_per_step = 0;
  double horizon_s = 0;       ///< > 0
  double mtbf_s = 0;          ///< of the whole job: that of one server over how many there are
  double shape = 1;           ///< of the Weibull distribution between failures; 1: exponential
  double checkpoint_s = 0;    ///< work stands still
  double drain_s = 0;         ///< after that, until the checkpoint is safe; work goes on
  std::int64_t interval = 1;  ///< steps between checkpoints
  double restart_s = 0;       ///< from a failure to the first step: detect, replace, load
  std::int64_t spares = -1;   ///< servers at hand; -1: there is always one
  double repair_s = 0;        ///< until a failed server is a spare again
};

/// Where the time of one run went; the parts add up to the horizon.
struct RunTime {
  double useful_s = 0;      ///< steps whose result was kept
  double lost_s = 0;        ///< steps that were done again, begun ones included
  double checkpoint_s = 0;  ///< standing still for checkpoints
  double restart_s = 0;
  double waiting_s = 0;    ///< for a spare
  std::int64_t steps = 0;  ///< kept
  std::int64_t failures = 0;
};

/// A mean over runs with the half width of its 95 % interval (Student's: base/student_t.h).
struct Estimate {
  double mean = 0, half_width = 0;
};

struct LongRunResult {
  std::vector<RunTime> runs;
  Estimate goodput;  ///< useful_s / horizon
  Estimate tokens_per_day, failures, steps;
  RunTime mean;  ///< of each part
};

/// Plays one run, step by step: a failure takes the work since the last safe checkpoint with it and
/// a spare out of the pool; the job restarts when it has one. Failures come while the job works or
/// restarts, not while it waits. O(steps + failures).
/// PRECONDITION: as the fields say.
RunTime play(const LongRun& run, std::uint64_t seed, std::int64_t number);

/// `count` of them; the result does not depend on `threads` (0: one a core). Where a StopSignal
/// stops the work, the runs up to the first that is not done are the result, if there are any
/// (else: Interrupted).
LongRunResult play_many(const LongRun& run, std::uint64_t seed, std::int64_t count, int threads);

/// A bound from above on the failures of one run that are expected: Lorden's inequality (1970, "On
/// excess over the boundary"), horizon / mtbf + E[X^2] / mtbf^2 - 1 for times X between failures;
/// or the mean of a geometric number, that of times in a row that all end before the horizon does,
/// where it is less.
double most_failures(const LongRun& run);

/// The chance that after a failure the job restarts and makes progress that lasts, however little
/// (a step and its checkpoint, safe), before it fails again.
double chance_of_progress(const LongRun& run);

/// How many spares there must be so that, servers failing every mtbf_s and being away for repair_s,
/// one is at hand for a share of at least `wanted` of the failures: the number away has Poisson's
/// distribution with mean repair_s / mtbf_s (M/G/infinity, Palm's theorem).
std::int64_t spares_needed(double mtbf_s, double repair_s, double wanted);

}  // namespace lockstep
