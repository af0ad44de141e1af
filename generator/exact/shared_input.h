#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "generator/model/model.h"

namespace lockstep {

/// Column linears in a row that read the same input share its all-gather, its copy kept for the
/// backward pass and its gradient's reduction.
struct SharedInput {
  bool first = true, last = true;  ///< of those that share, in forward order
  std::int64_t width = 0;          ///< what is gathered, and whose gradient is reduced
  std::int64_t operand_width = 0;  ///< of it, what the linears multiply
};

/// Column linears and heads.
bool reads_columns(const Module& module);

/// By module; only what reads_columns() says something about is meaningful. A column linear behind
/// a plain one reads that one's output; what of it the linear does not multiply is gathered beside
/// (DeepSeek's compressed keys and values, and the rotary part of the keys: Megatron Core,
/// multi_latent_attention.py); linears side by side that read the same width share, unless one
/// reads the encoder's output and the other does not.
std::vector<SharedInput> shared_inputs(std::span<const Module> modules);

}  // namespace lockstep
