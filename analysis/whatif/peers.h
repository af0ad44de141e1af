#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/whatif/metrics.h"

namespace lockstep::whatif {

struct Outlier;

// What sets one apart from its peers: those of its stage that run the same operation in the same
// step. Stages that are meant to be heavier are no reason to blame their workers.

/// The lower median: what an operation takes where fewer than half of the peers are slow, one of
/// two included. Reorders `values`. PRECONDITION: not empty. Expected O(n).
template <class T>
T usual(std::span<T> values);

/// By how much the computation of each worker takes longer than what is usual among its peers.
struct ComputeExcess {
  std::vector<double> excess_s;  ///< [step * workers + worker], as OpTable::ranks
  std::vector<double> late_s;    ///< the same of those passes alone that take longer
  std::vector<double> usual_s;   ///< the same of what is usual
  std::size_t workers = 0;

  /// A worker's of all steps.
  double total(const std::vector<double>& times, std::size_t worker) const;
  /// That as a share of what is usual.
  double share(const std::vector<double>& times, std::size_t worker) const;
};
/// O(operations).
/// With `undisturbed`, by what passes compute beside no collectives, where the trace says it: who
/// is slow, not who is late.
ComputeExcess compute_excess(const OpTable& table, bool undisturbed = false);
/// Takes what single long passes take too long off the excess of their workers. With `undisturbed`.
void leave_out(const OpTable& table, std::span<const Outlier> outliers, ComputeExcess& excess);

/// The passes of a worker that take 1.1 times what is usual, of the type that is slowed most; all
/// of a type that has none.
struct SlowPasses {
  TraceOp type = TraceOp::kForwardCompute;
  double factor = 1;  ///< the median one
  std::size_t slow = 0, passes = 0;
};
std::optional<SlowPasses> slow_passes(const OpTable& table, std::size_t worker);

/// Transfers between the same stages (of the same kind among peers of a pass) that take 1.1 times
/// what is usual for them among the dp_ranks, where most is lost by them.
struct SlowTransfers {
  std::string what;               ///< "forward-pp-comm", or an operation's name
  std::int32_t from = 0, to = 0;  ///< stages; the same for transfers with peers
  std::size_t lane = 0;           ///< of a step
  double factor = 1;              ///< the median one
  std::size_t places = 1;         ///< so many have such
};
std::optional<SlowTransfers> slow_transfers(const Scene& scene);

/// Times of T when no transfer between stages, or of a pass with its peers, takes longer than what
/// is usual. One simulation.
StepTimes with_usual_transfers(const Scene& scene);
/// Times of T when in each step one worker computes as is usual among its peers. One simulation.
StepTimes with_usual_worker(const Scene& scene, const std::vector<std::size_t>& worker_of_step);

/// Stages whose passes take 1.1 times those of the lower median stage, and how many times; of each
/// operation what is usual counts, so that one slow worker makes no slow stage.
struct HeavyStages {
  std::vector<std::int32_t> stages;
  std::vector<double> factors;
};
HeavyStages heavy_stages(const OpTable& table, const ComputeExcess& compute);

}  // namespace lockstep::whatif
