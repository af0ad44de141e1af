#pragma once

#include "generator/exact/pass_builder.h"

namespace lockstep {

/// An MoE with its communication (see pass.h).
void moe_forward(PassBuilder& out, const Module& module, const PassOptions& options);
void moe_backward(PassBuilder& out, const Module& module, const PassOptions& options);

}  // namespace lockstep
