#pragma once

#include <span>

#include "generator/argparse.h"
#include "generator/model/expression.h"

namespace lockstep {

/// Flags that replace a model's sizes: Megatron-LM's names for the variables of the built-in
/// architectures ("--num-layers 16" for layers).
std::span<const ArgSpec> model_size_flags();

/// The variables that `args` gives. ERRORS: none beyond parse_args()'s.
Variables model_sizes(const ArgValues& args);

}  // namespace lockstep
