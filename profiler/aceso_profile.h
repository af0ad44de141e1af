#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/measurements.h"

namespace lockstep {

/// One of the GPT models that Aceso's planner knows, and how an op table's rank is cut.
struct AcesoGpt {
  std::string size = "1_3B";  ///< 350M, 1_3B, 2_6B, 6_7B, 13B or scale-layer
  std::int64_t micro_batch = 1, tp = 1;
  int algorithm = 0;  ///< 0: qkv and GEMM-1 by column, dense and GEMM-2 by row; 1: the other way
};

/// One row of an op table: its kernels, and sizes per GPU in bytes.
struct AcesoOp {
  std::string name;
  std::vector<Kernel> forward, backward;
  double input = 0, output = 0;  ///< with the residual that is in flight past the op
  double weights = 0, activations = 0;
};

/// The 16 ops of a GPT, in the order of Aceso's tables, in fp16. ERRORS: an unknown size; sizes
/// that do not divide by tp.
std::vector<AcesoOp> aceso_ops(const AcesoGpt& gpt);

/// Aceso's op table (specification of the planners, section 1.1): times in microseconds, sizes in
/// MB of 2^20 bytes, three decimals. Reserved is what the op's largest kernel held beyond its
/// operands (workspace). Times are of computation: the tensor-parallel collectives that Aceso's own
/// profiler counts in are not, as one GPU has none.
/// ERRORS: a kernel that was not measured.
std::string aceso_csv(const AcesoGpt& gpt, const Measurements& measurements);
/// "gpt_1_3B_mbs1_tp2_algo0.csv"
std::string aceso_file_name(const AcesoGpt& gpt);

}  // namespace lockstep
