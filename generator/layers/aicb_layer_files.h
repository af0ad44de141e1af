#pragma once

#include <span>

#include "generator/model/built_in_files.h"

namespace lockstep {

/// generator/layers/*.yaml, sorted by name.
std::span<const BuiltInFile> aicb_layer_files();

}  // namespace lockstep
