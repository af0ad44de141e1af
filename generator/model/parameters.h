#pragma once

#include "generator/model/model.h"

namespace lockstep {

/// Parameters that a module adds: none where it shares an earlier one's (a shared head's bias is
/// its own). `active` are those one token passes through: of an MoE's experts its top k.
///
///   linear, head   in out, and out with a bias          embedding   in out
///   norm           in (its weights), twice that for LayerNorm
///   moe            router in experts, and experts with a bias; an expert 3 in ffn gated, else 2 in
///                  ffn, with biases 2 ffn + in, else ffn + in, more
struct ParameterTotals {
  double total = 0;
  double active = 0;
};
ParameterTotals module_parameters(const Module& module);

/// Of the whole model. Complexity: linear in blocks. Doubles: exact below 2^53.
ParameterTotals model_parameters(const Model& model);

}  // namespace lockstep
