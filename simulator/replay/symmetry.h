#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "simulator/replay/flow_graph.h"

namespace lockstep {

/// A partition of a flow graph's slots and constraints into classes that behave alike. It is
/// equitable when
///
///   slots of a class        have equal numbers (bits, latencies, entry, count), cross constraints
///                           of the same classes with the same coefficients, wait for slots of the
///                           same classes with the same lags, from and to places of the same
///                           classes;
///   constraints of a class  have equal capacity and are crossed by as many slots of each class,
///                           with the same coefficients;
///   places of a class       have the same colour and are left and reached by as many slots of each
///                           class.
///
/// Then all slots of a class do the same at the same time: by induction over the events, as max-min
/// rates are unique and hence invariant, and MaxMin gives equals the same number to the last bit
/// (docs/models.md). One slot a class can be simulated for all.
struct Partition {
  std::vector<std::int32_t> slot_class, constraint_class, place_class;
  std::int32_t slot_classes = 0, constraint_classes = 0, place_classes = 0;
};

/// The coarsest equitable partition (refinement.h), proved, neighbourhood by neighbourhood, not
/// hash by hash: see equitable(). Nothing where it has more classes than half of the slots: folding
/// would not pay. ERRORS: none.
/// With `known`, a partition of a graph that differed in numbers alone, that one where it is
/// equitable here, too: it may be finer than the coarsest. `colours` tells places further apart,
/// one entry a place; empty: none.
std::optional<Partition> find_symmetry(const FlowGraph& graph, const Partition* known = nullptr,
                                       std::span<const std::uint64_t> colours = {});

/// Whether a partition is equitable: compares each slot and constraint with the first of its class.
/// O(incidence log of the longest neighbourhood).
bool equitable(const FlowGraph& graph, const Partition& partition,
               std::span<const std::uint64_t> colours = {});

/// The graph with one slot and one constraint for each class: slot c stands for all of class c,
/// with the coefficient on a constraint that they have together. PRECONDITION: equitable.
FlowGraph fold(const FlowGraph& graph, const Partition& partition);

}  // namespace lockstep
