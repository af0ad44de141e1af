#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "generator/compute/gemm_efficiency.h"
#include "generator/compute/roofline.h"
#include "profiler/measurements.h"

namespace lockstep {

inline constexpr std::string_view kEfficiencySchema = "lockstep-gpu-efficiency/1";

/// Relative errors |model / measured - 1| over some shapes.
struct FitError {
  std::size_t shapes = 0;
  double median = 0, ninetieth = 0, worst = 0;
  double bias = 0;  ///< geometric mean of model / measured, less 1
};

/// One precision's products.
struct FittedGemm {
  Precision precision = Precision::kBf16;
  GemmEfficiency efficiency;
  FitError fitted, held_out;
};

/// The roofline's parameters as a sweep of one GPU sets them (generator/compute/roofline.h).
struct FittedEfficiency {
  std::string gpu;
  std::vector<FittedGemm> gemm;   ///< by precision
  AttentionEfficiency attention;  ///< its extra_keys are the family's; shares of 0: not measured
  FitError attention_fitted, attention_held_out;
  double memory = 0;  ///< share of the data sheet's bandwidth; 0: no norm was measured
  FitError memory_held_out;
};

/// Fits gemm_time(), attention's and memory's efficiencies to the half of the shapes whose hash is
/// even, and tells the error on both halves. The hash (FNV-1a) is of a product's
/// "min(m,n),max(m,n), k", of attention's batch, heads and sequence, of the other's sizes: a shape,
/// its transpose and its passes are on one side, so that the held-out half has no near copy of what
/// was fitted. The loss is the mean |log(model / measured)|; Nelder-Mead from three starts. ERRORS:
/// a GPU that gpu_spec() does not know; fewer than 16 products of a precision on one side.
FittedEfficiency fit_efficiency(const Measurements& measurements);

/// docs/formats/efficiency.md: parameters, errors and provenance.
std::string to_efficiency_json(const FittedEfficiency& fitted, const Measurements& measurements);
/// The same for a terminal.
std::string efficiency_table(const FittedEfficiency& fitted);

}  // namespace lockstep
