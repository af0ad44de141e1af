#pragma once

#include <string>

#include "simulator/collectives/schedule.h"

namespace lockstep {

/// Proves a schedule right, or says in one sentence what is wrong with it; empty when it is right.
///
/// Form: places, chunks and waits are in range, no slots wait for each other in a circle, and a
/// place waits only for what it can see: its own sends and arrivals, and those of its receiver,
/// which tells it when there is room.
///
/// Data, by symbolic execution of the transfers written out: a place's copy of a chunk is the set
/// of ranks whose contribution is in it; a switch's copies start empty. A rank sends no chunk that
/// it does not have; a reduction never adds a contribution that is there already; at the end every
/// rank has what the operation promises (Schedule says what the chunks are; one of no bytes may be
/// left out). A barrier carries no
/// data: there, every rank's exit must follow every rank's entry.
///
/// Order: the result is the same in whatever order the dependencies allow. Of two transfers that
/// touch one copy, at least one writing it, one is an ancestor of the other; only two reductions
/// into one copy may go either way.
///
/// Cost: per conflict a walk back over dependencies, O(ranks) in a ring; memory ranks²·chunks bits.
std::string check_schedule(const Schedule& schedule);

}  // namespace lockstep
