#pragma once

#include "generator/model/built_in_files.h"

namespace lockstep {

/// megatron.yaml alone.
std::span<const BuiltInFile> megatron_files();

}  // namespace lockstep
