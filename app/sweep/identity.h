#pragma once

#include <string>

#include "app/sweep/grid.h"
#include "app/sweep/journal.h"

namespace lockstep {

/// What the rows of a grid depend on: the command, flags, points and outputs (not how the file is
/// written, nor its limits); this program with those beside it; and the files and folders that
/// flags name, with all that lies in them but for `output`, the sweep's own folder.
/// Complexity: reads those files.
SweepIdentity identity_of(const Grid& grid, const std::string& output);
/// Its parts: of this program with those beside it, and of a file, or of a folder without
/// `output`; empty where there is none of that name.
std::string digest_of_programs();
std::string digest_of_named(const std::string& name, const std::string& output);

}  // namespace lockstep
