#pragma once

#include <span>

#include "generator/model/built_in_files.h"

namespace lockstep {

/// The processes that come with Lockstep, sorted by name.
std::span<const BuiltInFile> built_in_processes();

}  // namespace lockstep
