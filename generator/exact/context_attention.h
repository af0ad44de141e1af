#pragma once

#include "generator/exact/pass_builder.h"

namespace lockstep {

/// Attention with its context-parallel communication (see pass.h).
void attention_forward(PassBuilder& out, const Module& module, const PassOptions& options);
void attention_backward(PassBuilder& out, const Module& module, const PassOptions& options);

}  // namespace lockstep
