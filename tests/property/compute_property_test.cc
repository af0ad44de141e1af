#include <array>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "generator/compute/gemm_efficiency.h"
#include "generator/compute/roofline.h"

namespace lockstep::compute_property_test {
namespace {

// Mostly at the edges of tiles, where a formula with ceilings could fall.
std::int64_t random_size(Rng& rng) {
  const std::int64_t tiles = rng.between(0, rng.below(4) == 0 ? 256 : 8) * 128;
  return std::max<std::int64_t>(1, tiles + rng.between(-2, 2));
}

const GpuSpec& random_gpu(Rng& rng) { return gpu_specs()[rng.below(gpu_specs().size())]; }

Precision random_precision(Rng& rng, const GpuSpec& gpu) {
  const std::array all{Precision::kFp16, Precision::kFp32, Precision::kBf16, Precision::kFp8};
  const std::size_t able = gpu.fp8 > 0 ? 4 : gpu.bf16 > 0 ? 3 : 2;
  return all.at(rng.below(able));
}

TEST(ComputeProperty, ProductsDoNotGetFasterWithSize) {
  Rng rng(1, "gemm monotone");
  for (int i = 0; i < 20'000; ++i) {
    const GpuSpec& gpu = random_gpu(rng);
    const Precision precision = random_precision(rng, gpu);
    const GemmShape small{rng.between(1, 9), random_size(rng), random_size(rng), random_size(rng)};
    GemmShape large = small;
    const std::array sizes{&large.batch, &large.m, &large.n, &large.k};
    *sizes.at(rng.below(4)) += rng.between(1, 200);
    ASSERT_LE(gemm_time(small, gpu, precision), gemm_time(large, gpu, precision))
        << gpu.name << ' ' << small.batch << 'x' << small.m << 'x' << small.n << 'x' << small.k;
  }
}

TEST(ComputeProperty, ProductsStayBelowPeakAndAboveTheirTraffic) {
  Rng rng(2, "gemm bounds");
  for (int i = 0; i < 20'000; ++i) {
    const GpuSpec& gpu = random_gpu(rng);
    const Precision precision = random_precision(rng, gpu);
    const GemmShape shape{rng.between(1, 9), random_size(rng), random_size(rng), random_size(rng)};
    const double flops = 2.0 * static_cast<double>(shape.batch) * static_cast<double>(shape.m) *
                         static_cast<double>(shape.n) * static_cast<double>(shape.k);
    const Time time = gemm_time(shape, gpu, precision);
    ASSERT_LT(flops / time.seconds(), peak_flops(gpu, precision));
    // Transposed, the same tiles and the same traffic.
    ASSERT_EQ(time, gemm_time({shape.batch, shape.n, shape.m, shape.k}, gpu, precision));
  }
}

TEST(ComputeProperty, OperatorsDoNotGetFasterWithWork) {
  Rng rng(3, "operator monotone");
  for (int i = 0; i < 20'000; ++i) {
    const GpuSpec& gpu = random_gpu(rng);
    const Precision precision = random_precision(rng, gpu);
    Operator op;
    op.kind = rng.below(2) == 0 ? OperatorKind::kAttention : OperatorKind::kMemory;
    op.element_bytes = precision == Precision::kFp8 ? 1 : 2;
    op.batch = rng.between(1, 8);
    op.heads = rng.between(1, 64);
    op.queries = random_size(rng);
    op.head_dim = op.value_dim = 64;
    op.backward = rng.below(2) == 0;
    op.flops = 1e12 * rng.uniform();
    op.bytes = 1e9 * rng.uniform();
    Operator more = op;
    (rng.below(2) == 0 ? more.flops : more.bytes) *= 1 + rng.uniform();
    more.queries += rng.between(0, 10);
    ASSERT_LE(operator_time(op, gpu, precision), operator_time(more, gpu, precision));
  }
}

// The H800 is an H100 to its own kernels, the H200 one with faster memory, the H20 one with less
// arithmetic than either.
TEST(ComputeProperty, KnownOrderOfGpus) {
  Rng rng(4, "gpu order");
  for (int i = 0; i < 2'000; ++i) {
    const GemmShape shape{1, random_size(rng), random_size(rng), random_size(rng)};
    const auto time = [&](std::string_view gpu) {
      return gemm_time(shape, gpu_spec(gpu), Precision::kBf16);
    };
    ASSERT_EQ(time("H100"), time("H800"));
    ASSERT_LE(time("H200"), time("H100"));
    ASSERT_EQ(time("A100"), time("A800"));
  }
  EXPECT_GT(gemm_time({1, 8192, 8192, 8192}, gpu_spec("H20"), Precision::kBf16),
            5 * gemm_time({1, 8192, 8192, 8192}, gpu_spec("H200"), Precision::kBf16));
}

}  // namespace
}  // namespace lockstep::compute_property_test
