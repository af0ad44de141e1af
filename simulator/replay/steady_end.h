#pragma once

#include <cstdint>
#include <optional>

#include "simulator/replay/flow_graph.h"

namespace lockstep {

/// When a long pipeline ends, by its steady state.
struct SteadyEnd {
  Time end;
  Time error;                  ///< see below
  std::int64_t simulated = 0;  ///< transfers
};

/// For a flow graph whose slots all have the same number N of transfers and that never repeats
/// exactly (docs/models.md): it is run with m = 32, 64, 128, … transfers a slot, to its end T(m).
/// With L the time that the busiest constraint needs for one transfer of every slot,
///
///     T(m) = m L + e(m)        e(m): filling, draining, and whatever time that constraint stands
///     idle
///
/// and the end is taken as N L + e(m). The error that is told is the largest of |e(m) - e(m/2)|,
/// |e(m/2) - e(m/4)| and L, and the first m at which that is no more than `budget` of the end is
/// enough. Where the busiest constraint sets the pace, e(m) comes to rest but for the time of a
/// transfer or so; where something else does, the difference doubles each time and the budget is
/// never met. So this is an estimate with a stated error, no proof: an option, never the default.
///
/// Nothing where slots differ in their number of transfers, wait for later ones, or where m would
/// pass N / 4: at most half of the work of a full run has then been spent.
/// PRECONDITION: budget > 0.
std::optional<SteadyEnd> steady_end(const FlowGraph& graph, double budget);

}  // namespace lockstep
