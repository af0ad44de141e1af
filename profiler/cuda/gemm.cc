#include "profiler/cuda/gemm.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include <fmt/format.h>

#include "base/error.h"
#include "profiler/cuda/launch.h"

namespace lockstep::cuda {
namespace {

constexpr std::int64_t kWorkspace = std::int64_t{64} << 20;
constexpr int kCandidates = 16, kQuickRuns = 5;
constexpr double kInTheRunning = 1.05;  // over the fastest candidate's first run

void check_blas(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw Error(fmt::format("{}: {}", what, cublasGetStatusString(status)));
  }
}

struct Types {
  cudaDataType_t operand = CUDA_R_16BF, result = CUDA_R_16BF;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  std::int64_t operand_bytes = 2, result_bytes = 2;
};

Types types_of(const Kernel& kernel) {
  const bool weight = kernel.variant == "weight-gradient";
  switch (kernel.precision) {
    case Precision::kBf16:
      return {CUDA_R_16BF, weight ? CUDA_R_32F : CUDA_R_16BF, CUBLAS_COMPUTE_32F, 2,
              weight ? 4 : 2};
    case Precision::kFp16:
      return {CUDA_R_16F, weight ? CUDA_R_32F : CUDA_R_16F, CUBLAS_COMPUTE_32F, 2, weight ? 4 : 2};
    case Precision::kFp32:
      return {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 4, 4};
    case Precision::kFp8:
      break;
  }
  return {CUDA_R_8F_E4M3, weight ? CUDA_R_32F : CUDA_R_16BF, CUBLAS_COMPUTE_32F, 1, weight ? 4 : 2};
}

/// A matrix as cuBLASLt sees it: column by column.
struct Matrix {
  std::int64_t rows = 0, columns = 0;  // as stored
  bool transposed = false;
};

/// The product of row-by-row matrices, turned round: Cᵀ = Bᵀ Aᵀ.
struct Layouts {
  Matrix first, second;
};
Layouts layouts_of(const Kernel& kernel, std::int64_t m, std::int64_t n, std::int64_t k) {
  if (kernel.variant == "input-gradient" && kernel.precision != Precision::kFp8) {
    return {{n, k, false}, {k, m, false}};  // w (k x n), dy (m x k)
  }
  if (kernel.variant == "weight-gradient" && kernel.precision != Precision::kFp8) {
    return {{n, k, false}, {m, k, true}};  // x (k x n), dy (k x m)
  }
  return {{k, n, true}, {k, m, false}};  // w (n x k), x (m x k)
}

/// All that a product needs while it may run.
struct Product {
  cublasLtMatmulDesc_t operation = nullptr;
  std::array<cublasLtMatrixLayout_t, 3> layouts{};
  Buffer a, b, c, scales;
  cublasLtMatmulAlgo_t algorithm{};
  float alpha = 1, beta = 0;

  ~Product() {
    for (cublasLtMatrixLayout_t layout : layouts) {
      if (layout != nullptr) {
        cublasLtMatrixLayoutDestroy(layout);
      }
    }
    if (operation != nullptr) {
      cublasLtMatmulDescDestroy(operation);
    }
  }
};

template <class T>
void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  check_blas(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value),
             "cublasLtMatmulDescSetAttribute");
}

cublasLtMatrixLayout_t layout_of(cudaDataType_t type, std::int64_t rows, std::int64_t columns,
                                 std::int64_t batch) {
  cublasLtMatrixLayout_t layout = nullptr;
  check_blas(cublasLtMatrixLayoutCreate(&layout, type, static_cast<std::uint64_t>(rows),
                                        static_cast<std::uint64_t>(columns), rows),
             "cublasLtMatrixLayoutCreate");
  if (batch > 1) {
    const auto count = static_cast<std::int32_t>(batch);
    const std::int64_t stride = rows * columns;
    check_blas(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                                sizeof count),
               "cublasLtMatrixLayoutSetAttribute");
    check_blas(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                &stride, sizeof stride),
               "cublasLtMatrixLayoutSetAttribute");
  }
  return layout;
}

void fill(const Buffer& buffer, cudaDataType_t type, std::int64_t elements, std::uint64_t seed,
          cudaStream_t stream) {
  if (type == CUDA_R_8F_E4M3) {
    fill_random_fp8(buffer.as<std::uint8_t>(), elements, seed, stream);
  } else {
    fill_random(type == CUDA_R_16BF  ? Element::kBf16
                : type == CUDA_R_16F ? Element::kFp16
                                     : Element::kFp32,
                buffer.get(), elements, seed, 1, stream);
  }
}

/// The candidate that runs fastest: each once, then those near the fastest some times more.
template <class LaunchOf>
int fastest(std::span<const cublasLtMatmulHeuristicResult_t> found, Timer& timer,
            const LaunchOf& launch_of) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const auto time = [&](std::size_t i, int runs) {
    if (found[i].state != CUBLAS_STATUS_SUCCESS) {
      return kNever;
    }
    try {
      return timer.quick(launch_of(found[i].algo), runs);
    } catch (const Error&) {
      return kNever;  // a candidate that the library proposes and refuses
    }
  };
  std::vector<double> seconds(found.size(), 0);
  if (found.size() > 1) {
    for (std::size_t i = 0; i < found.size(); ++i) {
      seconds[i] = time(i, 1);
    }
    const double limit = kInTheRunning * *std::ranges::min_element(seconds);
    for (std::size_t i = 0; i < found.size(); ++i) {
      seconds[i] = seconds[i] <= limit ? time(i, kQuickRuns) : kNever;
    }
  }
  return static_cast<int>(std::ranges::min_element(seconds) - seconds.begin());
}

}  // namespace

Gemm::Gemm() {
  check_blas(cublasLtCreate(&handle_), "cublasLtCreate");
  workspace_ = std::make_unique<Buffer>(kWorkspace, nullptr);
}
Gemm::~Gemm() { (void)cublasLtDestroy(handle_); }

std::string Gemm::version() {
  const std::size_t v = cublasLtGetVersion();
  return fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

Gemm::Plan Gemm::plan(const Kernel& kernel, bool search, Timer& timer, std::int64_t* held) {
  const std::int64_t groups = kernel.kind == KernelKind::kGemm ? 1 : kernel.size("groups");
  const std::int64_t m = kernel.size("m"), n = kernel.size("n"), k = kernel.size("k");
  const Types types = types_of(kernel);
  const Layouts layouts = layouts_of(kernel, m, n, k);
  if (kernel.precision == Precision::kFp8 && (m % 16 != 0 || n % 16 != 0 || k % 16 != 0)) {
    throw Error("fp8 products need sizes that are multiples of 16");
  }
  auto product = std::make_shared<Product>();
  check_blas(cublasLtMatmulDescCreate(&product->operation, types.compute, CUDA_R_32F),
             "cublasLtMatmulDescCreate");
  set(product->operation, CUBLASLT_MATMUL_DESC_TRANSA,
      layouts.first.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(product->operation, CUBLASLT_MATMUL_DESC_TRANSB,
      layouts.second.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  product->layouts[0] = layout_of(types.operand, layouts.first.rows, layouts.first.columns, groups);
  product->layouts[1] =
      layout_of(types.operand, layouts.second.rows, layouts.second.columns, groups);
  product->layouts[2] = layout_of(types.result, n, m, groups);
  product->beta = kernel.variant == "weight-gradient" ? 1.0F : 0.0F;
  product->a = Buffer(groups * n * k * types.operand_bytes, held);
  product->b = Buffer(groups * m * k * types.operand_bytes, held);
  product->c = Buffer(groups * m * n * types.result_bytes, held);
  const cudaStream_t stream = timer.stream().get();
  // Random operands: a GPU at its power limit runs zeros faster.
  fill(product->a, types.operand, groups * n * k, 1, stream);
  fill(product->b, types.operand, groups * m * k, 2, stream);
  check(cudaMemsetAsync(product->c.get(), 0, static_cast<std::size_t>(product->c.size()), stream),
        "cudaMemsetAsync");
  if (kernel.precision == Precision::kFp8) {
    product->scales = Buffer(4 * sizeof(float), held);
    const std::array<float, 4> ones{1, 1, 1, 1};
    check(cudaMemcpyAsync(product->scales.get(), ones.data(), sizeof ones, cudaMemcpyHostToDevice,
                          stream),
          "cudaMemcpyAsync");
    const void* scale = product->scales.get();
    set(product->operation, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, scale);
    set(product->operation, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, scale);
    set(product->operation, CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t{1});
  }
  timer.stream().synchronise();

  cublasLtMatmulPreference_t preference = nullptr;
  check_blas(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  const std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>,
                        decltype(&cublasLtMatmulPreferenceDestroy)>
      guard(preference, cublasLtMatmulPreferenceDestroy);
  const auto limit = static_cast<std::uint64_t>(kWorkspace);
  check_blas(cublasLtMatmulPreferenceSetAttribute(
                 preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &limit, sizeof limit),
             "cublasLtMatmulPreferenceSetAttribute");
  std::array<cublasLtMatmulHeuristicResult_t, kCandidates> found{};
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle_, product->operation, product->layouts[0], product->layouts[1], product->layouts[2],
      product->layouts[2], preference, search ? kCandidates : 1, found.data(), &count);
  if (status != CUBLAS_STATUS_SUCCESS || count == 0) {
    throw Error(
        fmt::format("cuBLASLt has no algorithm for it ({})", cublasGetStatusString(status)));
  }

  const auto launch = [this, product](const cublasLtMatmulAlgo_t& algorithm, cudaStream_t on) {
    check_blas(
        cublasLtMatmul(handle_, product->operation, &product->alpha, product->a.get(),
                       product->layouts[0], product->b.get(), product->layouts[1], &product->beta,
                       product->c.get(), product->layouts[2], product->c.get(), product->layouts[2],
                       &algorithm, workspace_->get(), static_cast<std::size_t>(kWorkspace), on),
        "cublasLtMatmul");
  };
  const int best = fastest(std::span(found).first(static_cast<std::size_t>(count)), timer,
                           [&](const cublasLtMatmulAlgo_t& algorithm) {
                             return Launch([&](cudaStream_t on) { launch(algorithm, on); });
                           });
  const cublasLtMatmulHeuristicResult_t& chosen = found[static_cast<std::size_t>(best)];
  product->algorithm = chosen.algo;
  if (held != nullptr) {
    *held += static_cast<std::int64_t>(chosen.workspaceSize);
  }
  int id = 0;
  std::size_t written = 0;
  (void)cublasLtMatmulAlgoConfigGetAttribute(&chosen.algo, CUBLASLT_ALGO_CONFIG_ID, &id, sizeof id,
                                             &written);
  return {[launch, product](cudaStream_t on) { launch(product->algorithm, on); },
          fmt::format("cuBLASLt algorithm {}, candidate {} of {}", id, best + 1, count),
          product,
          {product->a.get(), product->b.get(), product->c.get()}};
}

}  // namespace lockstep::cuda
