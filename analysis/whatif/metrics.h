#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/whatif/model.h"

namespace lockstep::whatif {

/// How much slower a job is because of one part of it, for each part.
struct Decomposition {
  std::vector<std::string> labels;            ///< ascending: numbers, or names of operation types
  std::vector<double> ratio;                  ///< one a label
  std::vector<std::vector<double>> per_step;  ///< [step][label]
};

/// The trace, its graph and its two timelines: what every what-if question is asked of.
struct Scene {
  const OpTable& table;
  const DependencyGraph& graph;
  const Simulator& simulator;
  const Traced& traced;
  const Model& model;
};

/// Means over the steps.
double mean_nodelay(const Scene& scene);  ///< of T, spans
double mean_ideal(const Scene& scene);    ///< of I, to the optimizer's end

/// S = <T> / <I> (Wu et al., OSDI '25, eq. 1); >= 1 but for rounding and negative transfers.
double blocking_slowdown(const Scene& scene);
/// <B> / <E(nodelay)>: what the launch gaps cost, that is how far the model is from the trace (the
/// discrepancy by which the paper leaves jobs out; no equation of its own).
double launch_slowdown(const Scene& scene);

/// S_t = <E(ideal | operations of type t as traced)> / <I> (eq. 2): everything mended but t. Sends
/// and receives of a direction are one label. One simulation a label.
Decomposition blocking_by_optype(const Scene& scene);
/// The same for the operations of a pipeline stage (as S_w in eq. 4, by stage). One simulation a
/// stage.
Decomposition blocking_by_stage(const Scene& scene);
/// The same for a data-parallel rank (eq. 4, by dp_rank). The other ranks of a step are alike but
/// for whom they wait for, so that one of each kind stands for them: all together cost two
/// simulations without, a few more with tensor- and context-parallel ranks.
Decomposition blocking_by_dp_rank(const Scene& scene);
/// S_w for every worker alone (eq. 4, exact); labels are global ranks, in the order of
/// OpTable::ranks. Two simulations a stage (five with tensor-parallel ranks).
Decomposition blocking_by_worker(const Scene& scene);
/// The artifact's approximation of eq. 4, min(S of its dp_rank, S of its stage), [stage * dp +
/// dp_rank].
std::vector<double> approximate_by_worker(const Decomposition& by_dp_rank,
                                          const Decomposition& by_stage);

/// S' = <E(nodelay | launch delays of a part as traced)> / <E(nodelay)>: eq. 2 for launch delays,
/// the artifact's own. One simulation a part.
Decomposition launch_by_optype(const Scene& scene);
Decomposition launch_by_stage(const Scene& scene);
/// More than 64 dp_ranks by launch_times_by_paths where that is cheaper; then to some 1e-15.
Decomposition launch_by_dp_rank(const Scene& scene);

/// What a set of workers contributes to the slowdown (eq. 5).
struct Contribution {
  double tori = 0, tideal = 0;       ///< <T> and <I>, spans, seconds
  std::optional<double> trem, tadd;  ///< T with W ideal, ideal with W as in T
  std::optional<double> rem, add;    ///< shares of tori - tideal; absent if that is 0
};
/// `in_w`: as OpTable::ranks. Two simulations.
Contribution contribution(const Scene& scene, const std::vector<bool>& in_w);
/// <T> and <I> alone.
Contribution no_contribution(const Scene& scene);
/// M_S: eq. 5 for the last stage.
std::vector<bool> last_stage(const OpTable& table);
/// M_W: eq. 5 for the ceil(3 %) workers with the largest S_w; ties go to the smaller global rank.
std::vector<bool> slowest_workers(const OpTable& table, const std::vector<double>& by_worker);

/// The step times of an edited T: `edit(node, lane range, values)` changes durations of local and
/// transfer times of grouped operations, in seconds, before the simulation.
using Edit =
    std::function<void(std::uint32_t node, std::size_t first_lane, std::span<double> values)>;
StepTimes simulate_edited(const Scene& scene, const Edit& edit);

}  // namespace lockstep::whatif
