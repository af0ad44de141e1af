// Products and attention by NVIDIA's libraries against double precision on the CPU: that operands
// lie as the shapes say. And that each kind of kernel is timed in each of its forms.
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "profiler/cuda/attention.h"
#include "profiler/cuda/cuda_device.h"
#include "profiler/kernels/reference.h"
#include "profiler/statistics.h"
#include "tests/support/gpu_tensors.h"

namespace lockstep::gpu_device_test {
namespace {

using testing::expect_near;
using testing::read_gpu;
using Gpu = testing::GpuTest;
using Numbers = std::vector<double>;

std::size_t whole(std::int64_t size) { return static_cast<std::size_t>(size); }

Numbers transposed(const Numbers& x, std::size_t rows, std::size_t columns) {
  Numbers y(x.size());
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      y[j * rows + i] = x[i * columns + j];
    }
  }
  return y;
}

Numbers part(const Numbers& x, std::size_t number, std::size_t size) {
  const auto begin = x.begin() + static_cast<std::ptrdiff_t>(number * size);
  return {begin, begin + static_cast<std::ptrdiff_t>(size)};
}

class Products : public testing::GpuTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(Products, AreOfRowByRowMatrices) {
  const std::string_view variant = GetParam();
  cuda::Timer timer(1 << 20);
  cuda::Gemm gemm;
  const std::size_t groups = 3, m = 48, n = 80, k = 112;
  const Kernel kernel =
      make_kernel(KernelKind::kBatchedGemm, Precision::kBf16, {3, 48, 80, 112}, false, variant);
  const cuda::Gemm::Plan plan = gemm.plan(kernel, true, timer, nullptr);
  const bool weight = variant == "weight-gradient";
  const auto read_result = [&] {
    return weight ? read_gpu<float>(plan.tensors[2], groups * m * n)
                  : read_gpu<__nv_bfloat16>(plan.tensors[2], groups * m * n);
  };
  const Numbers first = read_gpu<__nv_bfloat16>(plan.tensors[0], groups * n * k);
  const Numbers second = read_gpu<__nv_bfloat16>(plan.tensors[1], groups * m * k);
  const Numbers before = read_result();
  plan.launch(timer.stream().get());
  Numbers got = read_result();
  for (std::size_t i = 0; weight && i < got.size(); ++i) {
    got[i] -= before[i];  // it adds to what is there
  }
  for (std::size_t group = 0; group < groups; ++group) {
    Numbers w = part(first, group, n * k), x = part(second, group, m * k);
    if (variant == "forward") {
      w = transposed(w, n, k);
    } else if (weight) {
      x = transposed(x, k, m);
    }
    expect_near(part(got, group, m * n), reference::product(x, w, m, n, k), weight ? 1e-4 : 5e-3);
  }
}

INSTANTIATE_TEST_SUITE_P(Passes, Products,
                         ::testing::Values("forward", "input-gradient", "weight-gradient"));

/// One head of queries by features out of batch by sequence by head by feature.
Numbers head_of(const Numbers& x, std::size_t batch, std::size_t head, std::size_t heads,
                std::size_t length, std::size_t width) {
  Numbers out;
  for (std::size_t row = 0; row < length; ++row) {
    const std::size_t at = ((batch * length + row) * heads + head) * width;
    out.insert(out.end(), x.begin() + static_cast<std::ptrdiff_t>(at),
               x.begin() + static_cast<std::ptrdiff_t>(at + width));
  }
  return out;
}
void add(Numbers& to, const Numbers& x) {
  to.resize(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    to[i] += x[i];
  }
}

TEST_F(Gpu, FusedAttentionBothWays) {
  if (!cuda::has_fused_attention()) {
    GTEST_SKIP() << "this build has no cuDNN: configure with -DLOCKSTEP_CUDNN=ON";
  }
  cuda::Timer timer(1 << 20);
  const auto attention = cuda::make_fused_attention();
  for (const std::int64_t keys : {128, 192}) {
    Kernel kernel =
        make_kernel(KernelKind::kAttention, Precision::kBf16, {2, 4, 2, 128, keys, 64, 64});
    kernel.causal = true;
    const std::size_t batch = 2, heads = 4, groups = 2, s = 128, t = whole(keys), d = 64;
    const cuda::Gemm::Plan forward = attention->plan(kernel, true, timer, nullptr);
    forward.launch(timer.stream().get());
    kernel.backward = true;
    const cuda::Gemm::Plan backward = attention->plan(kernel, true, timer, nullptr);
    // The same numbers both ways, and the results of the one for the other.
    const auto hand_over = [&](std::size_t tensor, std::size_t bytes) {
      ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      ASSERT_EQ(cudaMemcpy(backward.tensors[tensor], forward.tensors[tensor], bytes,
                           cudaMemcpyDeviceToDevice),
                cudaSuccess);
    };
    hand_over(0, batch * heads * s * d * 2);
    hand_over(1, batch * groups * t * d * 2);
    hand_over(2, batch * groups * t * d * 2);
    hand_over(3, batch * heads * s * d * 2);
    hand_over(4, batch * heads * s * 4);
    backward.launch(timer.stream().get());
    using T = __nv_bfloat16;
    const Numbers q = read_gpu<T>(forward.tensors[0], batch * heads * s * d),
                  k = read_gpu<T>(forward.tensors[1], batch * groups * t * d),
                  v = read_gpu<T>(forward.tensors[2], batch * groups * t * d),
                  o = read_gpu<T>(forward.tensors[3], batch * heads * s * d),
                  dy = read_gpu<T>(backward.tensors[5], batch * heads * s * d),
                  dq = read_gpu<T>(backward.tensors[6], batch * heads * s * d),
                  dk = read_gpu<T>(backward.tensors[7], batch * groups * t * d),
                  dv = read_gpu<T>(backward.tensors[8], batch * groups * t * d);
    for (std::size_t b = 0; b < batch; ++b) {
      for (std::size_t g = 0; g < groups; ++g) {
        const Numbers own_k = head_of(k, b, g, groups, t, d),
                      own_v = head_of(v, b, g, groups, t, d);
        Numbers sum_dk, sum_dv;
        for (std::size_t h = g * heads / groups; h < (g + 1) * heads / groups; ++h) {
          const Numbers own_q = head_of(q, b, h, heads, s, d),
                        own_dy = head_of(dy, b, h, heads, s, d);
          expect_near(head_of(o, b, h, heads, s, d),
                      reference::attention(own_q, own_k, own_v, d, d, true), 5e-3);
          const double scale = 1 / std::sqrt(static_cast<double>(d));
          const Numbers p = reference::softmax(
              reference::product(own_q, transposed(own_k, t, d), s, t, d), s, t, true, scale);
          const Numbers dp = reference::product(own_dy, transposed(own_v, t, d), s, t, d);
          const Numbers ds = reference::softmax_gradient(p, dp, t, scale);
          expect_near(head_of(dq, b, h, heads, s, d), reference::product(ds, own_k, s, d, t), 2e-2);
          add(sum_dk, reference::product(transposed(ds, s, t), own_q, t, d, s));
          add(sum_dv, reference::product(transposed(p, s, t), own_dy, t, d, s));
        }
        expect_near(head_of(dk, b, g, groups, t, d), sum_dk, 2e-2);
        expect_near(head_of(dv, b, g, groups, t, d), sum_dv, 2e-2);
      }
    }
  }
}

TEST_F(Gpu, EveryKindOfKernelIsTimedInEveryForm) {
  const auto device = cuda::open_device(0);
  for (int kind = 0; kind < kKernelKinds; ++kind) {
    const KernelTraits& traits = traits_of(static_cast<KernelKind>(kind));
    const bool product = traits.sizes.back() == "k";
    if (traits.kind == KernelKind::kAttention && !cuda::has_fused_attention()) {
      continue;
    }
    Kernel kernel{traits.kind};
    for (std::size_t i = 0; i < traits.sizes.size(); ++i) {
      kernel.sizes[i] = traits.sizes[i] == "topk"    ? 8
                        : traits.sizes[i] == "batch" ? 2
                        : traits.sizes[i] == "bytes" ? 1 << 20
                                                     : 128;
    }
    std::set<Kernel> forms;
    for (const Precision precision :
         {Precision::kBf16, Precision::kFp16, Precision::kFp32, Precision::kFp8}) {
      if ((precision == Precision::kFp8 && !product) ||
          (precision == Precision::kFp32 && traits.kind == KernelKind::kAttention)) {
        continue;
      }
      kernel.precision = precision;
      for (std::size_t variant = 0; variant < std::max<std::size_t>(1, traits.variants.size());
           ++variant) {
        kernel.variant = traits.variants.empty() ? std::string_view() : traits.variants[variant];
        for (const bool backward : {false, true}) {
          for (const bool causal : {false, true}) {
            kernel.backward = backward && traits.backward;
            kernel.causal = causal && traits.causal;
            forms.insert(kernel);
          }
        }
      }
    }
    for (const Kernel& form : forms) {
      try {
        const Measurement one = device->measure(form, {2, 5, true, true});
        EXPECT_EQ(one.seconds.size(), 5U) << to_text(form);
        EXPECT_GT(summarise(one.seconds).median, 0) << to_text(form);
        EXPECT_GT(one.peak.count(), 0) << to_text(form);
      } catch (const Error& error) {
        ADD_FAILURE() << to_text(form) << ": " << error.what();
      }
    }
  }
  EXPECT_TRUE(device->usable());
}

TEST_F(Gpu, AJobsKernelsTakeTurns) {
  const auto device = cuda::open_device(0);
  const Kernel often = make_kernel(KernelKind::kGemm, Precision::kBf16, {2048, 2048, 2048}),
               once = make_kernel(KernelKind::kNorm, Precision::kBf16, {2048, 2048}),
               refused = make_kernel(KernelKind::kNorm, Precision::kBf16, {16, 1 << 20});
  const std::vector<StepKernel> kernels{{often, 24}, {once, 1}, {refused, 24}};
  const Measurements times = measure_job(*device, kernels, {2, 20, true, true});
  EXPECT_EQ(times.of(often).seconds.size(), 20U);
  EXPECT_GE(times.of(once).seconds.size(), 5U);
  EXPECT_GT(times.median_s(often), 10e-6);
  EXPECT_LT(times.median_s(often), 200e-6);
  ASSERT_EQ(times.left_out.size(), 1U);
  EXPECT_NE(times.left_out[0].find("at most 16384 wide"), std::string::npos) << times.left_out[0];
}

TEST_F(Gpu, AProductSlowsDownBesideACopy) {
  const auto device = cuda::open_device(0);
  const Kernel product = make_kernel(KernelKind::kGemm, Precision::kBf16, {8192, 8192, 8192});
  const InterferenceRow row = device->interfere(product, 256 << 20, 32, {1, 3, true, true});
  EXPECT_EQ(row.copy_blocks, 32);
  EXPECT_GT(row.copy_s, 0);
  EXPECT_GT(row.both_compute_s, 1.02 * row.compute_s);  // 32 of an H100's 132 SMs are taken
  EXPECT_LT(row.both_compute_s, 4 * row.compute_s);
}

}  // namespace
}  // namespace lockstep::gpu_device_test
