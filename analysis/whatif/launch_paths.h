#pragma once

#include <vector>

#include "analysis/whatif/metrics.h"

namespace lockstep::whatif {

/// E of T in which the launch delays of one dp_rank are as traced, for each dp_rank:
/// [dp_rank][step], in seconds. What launch_by_dp_rank needs, without a simulation a dp_rank.
///
/// The dp_ranks meet in the collectives of all of them, and between those each is on its own. With
/// only max and + a dp_rank is told by the longest paths from the begin of one such collective (or
/// of the step) to the begin of another (or the end of the step),
///
///     G(k) = max over dp_ranks of  max(A(k), max over j before k of (G(j) + B(j, k)))
///
/// where A is the path from the step's begin and B that from collective j; one dp_rank's paths are
/// those with its delays, the others' are without. The largest two of each path over the dp_ranks
/// tell the largest over all but one.
///
/// Costs about two simulations a collective from which most of the step follows, whatever the
/// number of dp_ranks; memory of collectives^2 * dp_ranks numbers a thread. Sums are taken in
/// another order than a simulation's, so that the last digits may differ. PRECONDITION: one worker
/// a (stage, dp_rank) is traced.
std::vector<std::vector<double>> launch_times_by_paths(const Scene& scene);

/// How many simulations launch_times_by_paths costs, about.
std::size_t launch_paths_cost(const Scene& scene);

}  // namespace lockstep::whatif
