#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "generator/exact/folded_pass.h"
#include "planner/job/job_space.h"
#include "planner/job/step_bound.h"

namespace lockstep {

enum class PlanObjective : std::uint8_t { kTime, kCost, kEnergy, kMemory };

/// What a GPU costs, for the objectives that ask for it.
struct GpuRates {
  double usd_per_hour = 0;
  double busy_watts = 0, idle_watts = 0;  ///< while it computes; while it waits
};

/// A step as the replay found it.
struct PricedStep {
  double step_s = 0;
  double compute_s = 0;               ///< of the reporting rank
  std::array<double, 7> exposed_s{};  ///< by GroupKind
  double bubble_s = 0;                ///< StepResult::bubble
  std::int64_t work = 0;              ///< what the replay took (ReplayResult::work)
  friend bool operator==(const PricedStep&, const PricedStep&) = default;
};

/// What asking for a price came to. Without a step: it takes longer than `beyond_s`, and the replay
/// was given up there; or (0) the replay was too large, or was stopped.
struct Price {
  Price(const PricedStep& found) : step(found), work(found.work) {}  // NOLINT: is one
  explicit Price(std::int64_t spent, double beyond = 0) : work(spent), beyond_s(beyond) {}

  std::optional<PricedStep> step;
  std::int64_t work = 0;  ///< ReplayResult::work, up to where it was given up
  double beyond_s = 0;
};

/// One way to train the model, with all that is known of it. The job has no model (with_model()).
struct JobPlan {
  Job job;
  Bytes memory;     ///< of the fullest stage
  StepFloor floor;  ///< closed form
  bool priced = false;
  PricedStep step;      ///< where it is priced
  double beyond_s = 0;  ///< else: the replay was given up there (Price)

  double step_s() const { return priced ? step.step_s : std::max(floor.step_s, beyond_s); }
};

struct JobProblem {
  Job base;  ///< model, sequence, batch, precision and all else that is not chosen
  PlanAxes axes;
  const Topology* topology = nullptr;
  std::function<OperatorTime()> operator_time;  ///< each call makes one for a thread of its own
  SpaceLimits limits;
  Bytes memory_limit;  ///< of a GPU
  PlanObjective objective = PlanObjective::kTime;
  GpuRates rates;
  std::int64_t effort = 0;  ///< what all replays may take (ReplayResult::work); 0: no limit
  int threads = 0;          ///< 0: one a core
  /// Asked often, by several threads; true: the search ends with what it has. Then the result hangs
  /// on when that was.
  std::function<bool()> stop;
  /// Asked once, where the first replay is too large: whether prices are of a kind from now on that
  /// takes less.
  std::function<bool()> simplify;
};

struct JobSearchResult {
  /// Priced ones, best first. Where none could be: the one with the least bound, without a price.
  std::vector<JobPlan> plans;
  std::vector<JobPlan> front;   ///< of those: none is better in both time and memory
  std::vector<JobPlan> beaten;  ///< not priced: their replay was given up as slower, best first
  std::vector<JobPlan> next;    ///< the best not replayed, by their bound
  std::vector<JobPlan> misses;  ///< would be fast but do not fit, by their bound
  double bound = 0;             ///< no plan of the space is better than this, in the objective
  bool proven = false;          ///< the best plan is the best of the space
  bool stopped = false;         ///< by JobProblem::stop or a StopSignal
  std::int64_t nodes = 0, leaves = 0, fitting = 0, replays = 0, work = 0;
  /// Plans that would have been replayed but are too large for it; their closed form bounds them.
  std::int64_t too_large = 0;
  LeftOut left_out;
};

/// What the objective makes of a plan: seconds, US dollars, joules or bytes, of one step.
double objective_value(const JobProblem& problem, const JobPlan& plan);

/// A plan whose step takes longer has more than this value. Infinite where it does not hang on
/// that.
double longest_step_s(const JobProblem& problem, const JobPlan& plan, double value);

/// How far a replay is to go.
struct PriceLimits {
  double enough_s = std::numeric_limits<double>::infinity();  ///< until the step takes longer
  std::int64_t most_work = 0;                                 ///< ReplayLimits::most_work; 0: any
};

/// Prices a plan by the replay. The job has its model. Called from several threads at once.
using PriceJob = std::function<Price(const Job& job, const PriceLimits& limits)>;

/// Searches the space of job_nodes() and job_leaves() best first: a cut waits in order of a lower
/// bound of its objective; a node is taken apart into leaves, leaves that do not fit into memory
/// are dropped, others wait in order of StepBound::of(), and the first leaf in the queue is
/// replayed. When what is first cannot beat what was replayed, the best is proven. After that, some
/// leaves that need less memory than any before, and the first of another shape, are replayed too,
/// for the front and for comparison.
///
/// A floor says little of a plan whose copies exchange much beside the passes (ZeRO-3), and those
/// come first. So the very first replay is of the leaf, among those with the least floors, that is
/// best with nothing hidden (StepFloor::unhidden_s); those with better floors are then replayed
/// only as far as the best step, where they need less memory up to one and a half of it for the
/// front, and each for half of the effort at most (before there is a best: all of it).
///
/// A leaf too large to be replayed keeps its bound, which bounds the space from then on; leaves of
/// the same cut that are no smaller are then not tried.
///
/// The result does not depend on threads, unless it was stopped. `progress` gets the effort that is
/// spent. Where a StopSignal ends the work after the first plan was priced, the result is what is
/// known by then. ERRORS: Error when nothing fits, with what was left out and why; those of
/// `price`.
JobSearchResult search_jobs(const JobProblem& problem, const PriceJob& price,
                            const std::function<void(std::int64_t)>& progress);

}  // namespace lockstep
