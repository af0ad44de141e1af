#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "generator/compute/gemm_efficiency.h"

namespace lockstep::compute_gemm_test {
namespace {

using ::testing::HasSubstr;

Time h100(const GemmShape& shape, Precision precision = Precision::kBf16) {
  return gemm_time(shape, gpu_spec("H100"), precision);
}

// 16·8 tiles = 128 on 132 SMs, u = 0.97: 2·2048·1024·4096 FLOPs at 0.960·989.4e12 = 18.088 us;
// k: 0.820 ns · 4096 = 3.359 us; in 0.013·2·3072·4096/3.35e12 = 0.098 us; out 0.803·2·2^21/3.35e12
// = 1.005 us; launch 5.249 us. Sum 27.799 us.
TEST(GemmTime, OneWaveByHand) { EXPECT_NEAR(h100({1, 2048, 1024, 4096}).us(), 27.799, 0.002); }

// 12·11 tiles on 132 SMs take one wave, 7·19 = 133 take two. A wave at k = 8192:
// 2·128²·8192·132 / (0.960·989.4e12) = 37.304 us; more input 0.013·2·384·8192/3.35e12 = 0.024 us;
// more output 0.803·2·128²/3.35e12 = 0.008 us. 12·22 = 264 tiles take the same two waves; output of
// 131 tiles is 1.029 us, input of 1024 rows 0.065 us.
TEST(GemmTime, APartOfAWaveCostsAWave) {
  const Time one = h100({1, 12 * 128, 11 * 128, 8192});
  const Time two = h100({1, 7 * 128, 19 * 128, 8192});
  EXPECT_NEAR((two - one).us(), 37.336, 0.002);
  EXPECT_NEAR((h100({1, 12 * 128, 22 * 128, 8192}) - two).us(), 1.094, 0.002);
}

// One row: 2·8192² bytes of weights, 0.9·3.35e12 B/s: 44.51 us, more than the 64 tiles' arithmetic.
TEST(GemmTime, ARowIsBoundByMemory) {
  EXPECT_NEAR(h100({1, 1, 8192, 8192}).us() - 5.249, 2.0 * (8192.0 * 8192 + 2 * 8192) / 3.015e6,
              0.01);
}

TEST(GemmTime, TheLeastProductIsALaunch) { EXPECT_NEAR(h100({1, 1, 1, 1}).us(), 5.249, 0.01); }

TEST(GemmTime, Refused) {
  EXPECT_THROW(h100({1, 0, 1, 1}), Error);
  EXPECT_THROW(h100({1, 1, 1, -4}), Error);
  const std::int64_t huge = 1'000'000'000'000'000'000;
  EXPECT_THROW(h100({huge, huge, huge, huge}), Error);
  EXPECT_THROW(gemm_time({1, 64, 64, 64}, gpu_spec("A100"), Precision::kFp8), Error);
}

TEST(GemmTime, EveryFamilySaysWhatItRestsOn) {
  for (const GpuSpec& gpu : gpu_specs()) {
    const GemmEfficiency& fit = gemm_efficiency(gpu.family, Precision::kBf16);
    EXPECT_FALSE(fit.basis.empty());
    EXPECT_GT(fit.compute, 0.5);
    EXPECT_LE(fit.compute, 1);
  }
  EXPECT_THAT(gemm_efficiency(GpuFamily::kCdna3, Precision::kBf16).basis,
              HasSubstr("not measured"));
}

}  // namespace
}  // namespace lockstep::compute_gemm_test
