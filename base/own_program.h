#pragma once

#include <filesystem>

namespace lockstep {

/// The file that this process runs; empty where the system does not tell.
std::filesystem::path own_program();

/// For lockstep's main() alone: other programs that we are part of may have any name.
void this_program_is_lockstep();

/// What to start to have another `lockstep`: this program as it runs, even if its file has been
/// replaced since, or where we are part of another program, the `lockstep` beside that or on PATH.
/// ERRORS: Error (kMissingPart) where there is none.
std::filesystem::path lockstep_to_start();

}  // namespace lockstep
