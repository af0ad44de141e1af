#pragma once

#include <string>

#include "generator/compute/profile_json.h"

namespace lockstep {

/// The profiles that `names` says as one: files and folders, separated by commas (or one whose name
/// has some); of a folder all
/// *.profile.json in it and below, in the order of their names. Of an operator that several have
/// the first one's times count; driver and libraries are the first one's.
/// ERRORS: those of read_profile_json() and FileText; an empty name, a folder without a profile,
/// profiles of different GPUs.
OperatorProfile read_profile_files(const std::string& names);

}  // namespace lockstep
