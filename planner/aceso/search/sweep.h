#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "planner/aceso/search/space.h"

namespace lockstep::aceso {

/// Prices of memory tried at once, in us per unit and microbatch in flight.
inline constexpr std::size_t kLanes = 10;
using Lanes = std::array<double, kLanes>;

/// Where a stage stands: what its cost depends on besides its ops.
struct StageKind {
  std::int64_t in_flight = 1;  ///< microbatches whose activations it holds
  std::int64_t weight_copies = 8;
  Units limit = 0;
  bool receives_across = false, sends_across = false;  ///< from and to another server
  bool reserve_last = false;  ///< the last op's reserve counts (fixed flavour)
};

/// Prices of memory that span what recomputing an op costs per unit of memory it saves, and two
/// beyond, at which stages that need more than there is cost more than any.
Lanes price_ladder(const Space& space);

/// Lower bounds of the time of every stage that starts at `first`: the Lagrangian of the memory
/// limit. For each price p of memory the cheapest path over (choice, recompute flag) with cost
/// time + p * memory, less p * limit; the largest over the prices is a bound (Everett 1963). Peaks
/// of recomputed runs are left out, the reserve counts with what every choice needs.
///
/// Calls visit(end, bound in us) for growing ends, until every longer stage takes more than
/// `stop_us` even if it had nothing to send. O(ops * steps * lanes).
void sweep_forward(const Space& space, const StageKind& kind, const Lanes& prices,
                   std::int64_t first, double stop_us,
                   const std::function<void(std::int64_t, double)>& visit);

/// The least start such that a stage from there to `end` can take at most `time_us`, by a bound
/// that only grows with the stage: no stage that ends at `end` or later starts before it. O(ops *
/// steps * lanes).
std::int64_t furthest_start(const Space& space, const StageKind& kind, const Lanes& prices,
                            std::int64_t end, double time_us);

}  // namespace lockstep::aceso
