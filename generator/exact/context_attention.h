#pragma once

#include "generator/exact/pass_builder.h"

namespace lockstep {

/// Attention with its context-parallel communication (see pass.h).
void attention_forward(PassBuilder& out, const Module& module, const PassOptions& options);
void attention_backward(PassBuilder& out, const Module& module, const PassOptions& options);

/// What is computed between the all-to-alls of DeepSpeed-Ulysses (ContextComm::kAllToAll): all
/// tokens of a share of the heads in place of all heads of a share of the tokens.
std::vector<Operator> of_all_tokens(std::vector<Operator> operators, const RankSizes& sizes);

}  // namespace lockstep
