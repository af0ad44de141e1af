#pragma once

#include "app/sweep/grid.h"

namespace lockstep {

/// Before anything runs: whether the command has the grid's flags.
/// ERRORS: Error with file and line: a flag that it has not (with the nearest); two that are
/// spellings of one; a value for a flag that takes none, and none for one that needs it.
void check_flags(const Grid& grid);

}  // namespace lockstep
