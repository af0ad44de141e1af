#pragma once

#include <cublasLt.h>
#include <memory>
#include <string>
#include <vector>

#include "profiler/cuda/check.h"
#include "profiler/cuda/timer.h"
#include "profiler/kernel.h"

namespace lockstep::cuda {

/// Matrix products by cuBLASLt. Matrices are row by row:
///
///   forward          y (m x n)  = x (m x k) · w (n x k)ᵀ
///   input-gradient   dx (m x n) = dy (m x k) · w (k x n)
///   weight-gradient  dw (m x n) += dy (k x m)ᵀ · x (k x n), dw in fp32
///
/// fp8 operands lie as in the forward pass, the only way that Hopper's units take them (Transformer
/// Engine keeps transposed copies).
class Gemm {
 public:
  Gemm();
  ~Gemm();
  Gemm(const Gemm&) = delete;
  Gemm& operator=(const Gemm&) = delete;

  /// A product with its operands and results, ready to run.
  struct Plan {
    Launch launch;
    std::string algorithm;
    std::shared_ptr<void> keeps;  ///< memory and descriptors
    /// Where operands and results lie: a product's are w, x and y (or what stands in their place).
    std::vector<void*> tensors = {};
  };
  /// With `search` the library's candidates are timed and the fastest is taken, else its first.
  /// ERRORS: Error if there is no algorithm for the shape or not enough memory.
  Plan plan(const Kernel& kernel, bool search, Timer& timer, std::int64_t* held);

  static std::string version();

 private:
  cublasLtHandle_t handle_ = nullptr;
  std::unique_ptr<Buffer> workspace_;
};

}  // namespace lockstep::cuda
