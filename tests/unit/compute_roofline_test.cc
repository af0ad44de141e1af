#include <limits>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "generator/compute/compute_times.h"
#include "generator/compute/gemm_efficiency.h"
#include "generator/compute/memory_efficiency.h"
#include "generator/compute/roofline.h"
#include "generator/compute/sustained.h"

namespace lockstep::compute_roofline_test {
namespace {

using ::testing::HasSubstr;

Operator memory(double bytes) {
  Operator op;
  op.bytes = bytes;
  return op;
}

Operator product(std::int64_t m, std::int64_t n, std::int64_t k) {
  Operator op;
  op.kind = OperatorKind::kGemm;
  op.m = m;
  op.n = n;
  op.k = k;
  return op;
}

// 1 x 32 heads, 4096 queries and keys, head size 128.
Operator attention(bool causal) {
  Operator op;
  op.kind = OperatorKind::kAttention;
  op.batch = 1;
  op.heads = op.kv_heads = 32;
  op.queries = op.keys = 4096;
  op.head_dim = op.value_dim = 128;
  op.causal = causal;
  op.flops = 4.0 * 32 * 4096 * 4096 * 128 / (causal ? 2 : 1);
  op.bytes = 2.0 * 4 * 32 * 4096 * 128;
  return op;
}

// 3.16575e9 bytes at 0.945 · 3.35e12 B/s are 1 ms, the launch 4.5 us.
TEST(Roofline, MemoryBoundByHand) {
  EXPECT_NEAR(operator_time(memory(3.16575e9), gpu_spec("H100"), Precision::kBf16).us(), 1004.5,
              1e-6);
  // A launch is the floor; nothing to do is nothing.
  EXPECT_NEAR(operator_time(memory(1), gpu_spec("H100"), Precision::kBf16).us(), 4.5, 1e-3);
  EXPECT_EQ(operator_time(memory(0), gpu_spec("H100"), Precision::kBf16), Time());
}

// Gradients of an embedding go through 0.88e12 B/s on 132 SMs: 0.88e9 bytes in 1 ms, launch 20 us;
// of a GPU with fewer SMs by as much less; never faster than half of the memory.
TEST(Roofline, SomeWorkIsHeldUpBySms) {
  GpuSpec gpu = gpu_spec("H100");
  ASSERT_EQ(gpu.multiprocessors, 132);
  EXPECT_NEAR(memory_time(0.88e9, MemoryWork::kEmbedding, true, gpu).us(), 1020, 1e-6);
  gpu.multiprocessors = 66;
  EXPECT_NEAR(memory_time(0.88e9, MemoryWork::kEmbedding, true, gpu).us(), 2020, 1e-6);
  gpu.multiprocessors = 132000;
  EXPECT_NEAR(memory_time(1.675e9, MemoryWork::kEmbedding, true, gpu).us(), 1020, 1e-6);
  EXPECT_EQ(memory_time(0, MemoryWork::kEmbedding, true, gpu), Time());
}

// A key is 2·32·4096·256 = 67.1e6 FLOPs for all queries. All keys: (4096+150) of it at
// 0.65·312e12: 1405.0 us. Causal: (2048+150): 727.3 us. The kernel reaches 4096/4246 of 65 %.
TEST(Roofline, AttentionByHand) {
  const GpuSpec& gpu = gpu_spec("A100");
  const double key = 2.0 * 32 * 4096 * 256;
  const Time full = operator_time(attention(false), gpu, Precision::kBf16);
  const Time half = operator_time(attention(true), gpu, Precision::kBf16);
  EXPECT_NEAR(full.us(), 5 + 1405.03, 0.05);
  EXPECT_NEAR(half.us(), 5 + 727.34, 0.05);
  EXPECT_NEAR((full - half).us(), 2048 * key / (0.65 * 312e12) * 1e6, 1e-3);
}

// On Hopper a block's way through 4,096 keys at 13 ns, 53.25 us, beside 408.26 us of work of 32
// heads or 12.76 of one: (408.26^1.2 + 53.25^1.2)^(1/1.2) = 437.58, (12.76^1.2 + 53.25^1.2)^(1/1.2)
// = 61.13.
TEST(Roofline, FewHeadsAreNoFasterThanABlocksWay) {
  Operator op = attention(false);
  EXPECT_NEAR(operator_time(op, gpu_spec("H100"), Precision::kBf16).us(), 5 + 437.58, 0.1);
  op.heads = op.kv_heads = 1;
  op.flops /= 32;
  op.bytes /= 32;
  EXPECT_NEAR(operator_time(op, gpu_spec("H100"), Precision::kBf16).us(), 5 + 61.13, 0.1);
  // A window of few keys: the block sees no more.
  op.flops /= 64;
  EXPECT_LT(operator_time(op, gpu_spec("H100"), Precision::kBf16).us(), 5 + 5);
}

// Backward: 2.5 times the work at 55 % instead of 65 %: 2.955 times as long, but for the launch.
TEST(Roofline, BackwardAttentionCostsMore) {
  const Time forward = operator_time(attention(false), gpu_spec("A100"), Precision::kBf16);
  Operator op = attention(false);
  op.backward = true;
  op.flops *= 2.5;
  const Time backward = operator_time(op, gpu_spec("A100"), Precision::kBf16);
  EXPECT_NEAR((backward.us() - 5) / (forward.us() - 5), 2.5 * 0.65 / 0.55, 1e-6);
}

TEST(Roofline, ProductsAreNoShorterThanTheirTraffic) {
  Operator op = product(128, 128, 128);
  op.bytes = 3.015e9;
  EXPECT_NEAR(operator_time(op, gpu_spec("H100"), Precision::kBf16).us(), 1005.249, 1e-3);
  op.m = 0;  // an expert without tokens
  EXPECT_EQ(operator_time(op, gpu_spec("H100"), Precision::kBf16), Time());
}

TEST(Roofline, GroupsShareWaves) {
  Operator op = product(128, 1024, 4096);
  op.kind = OperatorKind::kGroupedGemm;
  op.groups = 8;
  const GpuSpec& gpu = gpu_spec("H100");
  EXPECT_EQ(operator_time(op, gpu, Precision::kBf16),
            gemm_time({8, 128, 1024, 4096}, gpu, Precision::kBf16));
}

TEST(Roofline, Fp8IsForOperandsOfOneByte) {
  Operator op = product(4096, 4096, 4096);
  const GpuSpec& gpu = gpu_spec("H100");
  EXPECT_EQ(operator_time(op, gpu, Precision::kFp8), operator_time(op, gpu, Precision::kBf16));
  op.element_bytes = 1;
  EXPECT_LT(operator_time(op, gpu, Precision::kFp8), operator_time(op, gpu, Precision::kBf16));
}

TEST(Roofline, Refused) {
  const GpuSpec& gpu = gpu_spec("H100");
  for (const double bytes : {-1.0, std::numeric_limits<double>::quiet_NaN(),
                             std::numeric_limits<double>::infinity(), 1e30}) {
    EXPECT_THROW(operator_time(memory(bytes), gpu, Precision::kBf16), Error) << bytes;
  }
  EXPECT_THROW(operator_time(product(-1, 1, 1), gpu, Precision::kBf16), Error);
}

TEST(ComputeTimes, MeasuredBeforeModelled) {
  OperatorProfile profile;
  profile.gpu = "NVIDIA H100 SXM5";
  profile.times[key_of(product(64, 64, 64), Precision::kBf16)] = {Time::us(7), Time(), 3};
  ComputeTimes times(gpu_spec("H100"), Precision::kBf16,
                     std::make_shared<OperatorProfile>(profile));
  EXPECT_EQ(times(product(64, 64, 64)), Time::us(7));
  EXPECT_EQ(times(product(64, 64, 65)),
            operator_time(product(64, 64, 65), under_load(gpu_spec("H100")), Precision::kBf16));
  EXPECT_EQ(times.counts(), (ComputeTimes::Counts{1, 0, 1}));
}

TEST(ComputeTimes, Refused) {
  OperatorProfile profile;
  profile.gpu = "A100";
  EXPECT_THROW(
      ComputeTimes(gpu_spec("H100"), Precision::kBf16, std::make_shared<OperatorProfile>(profile)),
      Error);
  EXPECT_THROW(ComputeTimes(gpu_spec("A100"), Precision::kFp8), Error);
  ComputeTimes times(gpu_spec("H100"), Precision::kBf16);
  EXPECT_THROW(times(memory(-1)), Error);
  EXPECT_EQ(times.counts(), ComputeTimes::Counts());
}

}  // namespace
}  // namespace lockstep::compute_roofline_test
