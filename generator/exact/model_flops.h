#pragma once

#include "generator/exact/operator.h"
#include "generator/job.h"

namespace lockstep {

/// Arithmetic and memory traffic of one operator; of a matrix product 2 m n k, and its three
/// matrices once each.
double flops_of(const Operator& op);
double bytes_of(const Operator& op);

/// Floating-point operations of one step that the model itself needs, however it is cut: matrix
/// products and attention of all layers, forward once and backward twice as much, nothing computed
/// again. What a causal mask or a window hides is not counted where the attention kernel leaves it
/// out. Model FLOPs utilisation is this over the GPUs' peak (Chowdhery et al. 2022, "PaLM",
/// appendix B). PRECONDITION: check_job() accepts the job. O(modules).
double model_flops(const Job& job);

}  // namespace lockstep
