#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "generator/compute/gpu_spec.h"
#include "tests/support/error_of.h"

namespace lockstep::compute_gpu_spec_test {
namespace {

using lockstep::testing::error_of;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(GpuSpec, SpellingsOfOneType) {
  for (const char* text : {"H100", "h100", "H100-SXM5-80GB", "nvidia h100 sxm", "NVIDIA_H100"}) {
    EXPECT_EQ(gpu_spec(text).name, "H100") << text;
  }
  EXPECT_EQ(gpu_spec("AMD Instinct MI300X").name, "MI300X");
  EXPECT_EQ(gpu_spec("GB200").name, "GB200");
  EXPECT_EQ(gpu_spec("V100-SXM2-32GB").name, "V100");
  EXPECT_EQ(gpu_spec("NVIDIA H100 80GB HBM3").name, "H100");  // as nvidia-smi has it
  EXPECT_EQ(gpu_spec("B200-192GB").name, "B200");
}

// The memory tells apart what has one name, and no digit of a name is one of a size.
TEST(GpuSpec, MemoryIsPartOfTheType) {
  for (const char* text : {"H200-141GB", "h200_141gb", "H200 SXM5 141GB", "NVIDIA H200"}) {
    EXPECT_EQ(gpu_spec(text).name, "H200") << text;
  }
  for (const char* text :
       {"A100-40GB", "A100-SXM4-40GB", "A100 SXM 40GB", "NVIDIA A100-SXM4-40GB"}) {
    EXPECT_EQ(gpu_spec(text).name, "A100-40GB") << text;
  }
  EXPECT_EQ(gpu_spec("NVIDIA A100-SXM4-80GB").name, "A100");
  EXPECT_EQ(gpu_spec("Tesla V100-SXM2-16GB").name, "V100-16GB");
  for (const char* text : {"H100-94GB", "H20-141GB", "H2 00GB", "A100-20GB", "H200-0141GB"}) {
    EXPECT_EQ(find_gpu_spec(text), nullptr) << text;
  }
}

TEST(GpuSpec, UnknownTypes) {
  EXPECT_THAT(error_of([] { gpu_spec("H10O"); }), HasSubstr("did you mean H100?"));
  EXPECT_THAT(error_of([] { gpu_spec("TPUv5"); }),
              HasSubstr("one of V100, V100-16GB, A100-40GB, A100, A800, H100"));
  // An H100 PCIe is slower than the SXM module: it must not pass for one.
  EXPECT_THAT(error_of([] { gpu_spec("H100 PCIe"); }), HasSubstr("unknown GPU type"));
  EXPECT_THAT(error_of([] { gpu_spec(""); }), HasSubstr("unknown GPU type ''"));
  EXPECT_THAT(error_of([] { gpu_spec("H1000"); }), HasSubstr("unknown GPU type"));
}

TEST(GpuSpec, PrecisionsThatAGpuLacks) {
  const std::string text = error_of([] { peak_flops(gpu_spec("A100"), Precision::kFp8); });
  EXPECT_THAT(text, HasSubstr("A100 has no fp8"));
  EXPECT_THAT(text, HasSubstr("H100, H800, H20, H200, B200, GB200, B300, GB300, MI300X"));
  EXPECT_THAT(text, Not(HasSubstr("V100")));
  EXPECT_THAT(error_of([] { peak_flops(gpu_spec("V100"), Precision::kBf16); }),
              HasSubstr("V100 has no bf16"));
  // No TF32 on Volta: its vector units.
  EXPECT_DOUBLE_EQ(peak_flops(gpu_spec("V100"), Precision::kFp32), 15.7e12);
  EXPECT_DOUBLE_EQ(peak_flops(gpu_spec("A100"), Precision::kFp32), 156e12);
}

// Vendors' tables keep these ratios; a slip of the decimal point, or a rate with sparsity, does
// not.
TEST(GpuSpec, RatesAreInProportion) {
  std::set<std::string_view> names;
  for (const GpuSpec& gpu : gpu_specs()) {
    SCOPED_TRACE(gpu.name);
    EXPECT_TRUE(names.insert(gpu.name).second);
    EXPECT_GT(gpu.fp32, 0);
    EXPECT_GT(gpu.multiprocessors, 0);
    EXPECT_FALSE(gpu.source.empty());
    if (gpu.tf32 > 0) {
      EXPECT_NEAR(gpu.fp16 / gpu.tf32, 2, 0.01);
      EXPECT_EQ(gpu.fp16, gpu.bf16);
    }
    if (gpu.fp8 > 0) {
      EXPECT_NEAR(gpu.fp8 / gpu.fp16, 2, 0.01);
    }
    const double balance = gpu.fp16 / gpu.memory_bandwidth.bytes_per_second();
    EXPECT_GT(balance, 30);   // H20
    EXPECT_LT(balance, 350);  // GB200
    const double fill_s =
        static_cast<double>(gpu.memory.count()) / gpu.memory_bandwidth.bytes_per_second();
    EXPECT_GT(fill_s, 0.017);  // V100, 16 GB
    EXPECT_LT(fill_s, 0.05);
  }
  EXPECT_EQ(names.size(), 14U);
}

TEST(GpuSpec, PrecisionNames) {
  for (const Precision precision :
       {Precision::kBf16, Precision::kFp16, Precision::kFp32, Precision::kFp8}) {
    EXPECT_EQ(precision_of(to_text(precision)), precision);
  }
  EXPECT_EQ(precision_of("BF16"), Precision::kBf16);
  EXPECT_EQ(precision_of("fp4"), std::nullopt);
}

}  // namespace
}  // namespace lockstep::compute_gpu_spec_test
