#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "simulator/replay/symmetry.h"

namespace lockstep {

/// The coarsest equitable partition of a flow graph (Partition says what that is), up to hash
/// collisions: equitable() proves it. Nothing if it has more than `most_slot_classes` classes of
/// slots, as far as that shows before it is done.
///
/// Places are told apart first by who sends what to whom alone, which is a far smaller graph: what
/// differs there differs in the whole, and where one rank makes all others differ it shows at once.
/// Rounds of colour refinement over everything come next, as long as each finds many new colours:
/// in a graph that has few classes or nothing but classes they soon tell. Then classes are split
/// one by one: what looks at members of a class that has split is told apart by what it sees of it,
/// and of the parts of a class that splits all but the largest are looked at again (Hopcroft 1971;
/// Paige, Tarjan: Three partition refinement algorithms, 1987, section 3), so that a long ring of
/// slots costs what it has and not its square.
///
/// O(incidence log slots). Memory: 16 B a term, 8 B a wait, 40 B a slot, constraint and place.
/// `colours` as in find_symmetry().
std::optional<Partition> refine(const FlowGraph& graph, std::int32_t most_slot_classes,
                                std::span<const std::uint64_t> colours = {});

}  // namespace lockstep
