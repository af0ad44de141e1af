#pragma once

#include <cmath>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <vector>

#include <gtest/gtest.h>

#include "profiler/cuda/launch.h"
#include "profiler/kernels/math.h"

namespace lockstep::testing {

/// Tests that need a GPU; skipped, and said so, where there is none.
class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
      GTEST_SKIP() << "skipped: no GPU";
    }
  }
};

template <class T>
struct ElementOf {
  static constexpr cuda::Element kElement = cuda::Element::kFp32;
};
template <>
struct ElementOf<__half> {
  static constexpr cuda::Element kElement = cuda::Element::kFp16;
};
template <>
struct ElementOf<__nv_bfloat16> {
  static constexpr cuda::Element kElement = cuda::Element::kBf16;
};

/// Elements at an address on the GPU as real numbers. Waits for the GPU.
template <class T>
std::vector<double> read_gpu(const void* memory, std::size_t size) {
  std::vector<T> host(size);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(host.data(), memory, size * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
  std::vector<double> values;
  for (const T& value : host) {
    values.push_back(static_cast<double>(static_cast<float>(value)));
  }
  return values;
}

/// Numbers on the GPU, freed with the object. What is not given begins as NaN: elements that a
/// kernel leaves out show.
template <class T>
class GpuTensor {
 public:
  explicit GpuTensor(const std::vector<double>& values) : size_(values.size()) {
    std::vector<T> host;
    for (const double value : values) {
      host.push_back(T(static_cast<float>(value)));
    }
    EXPECT_EQ(cudaMalloc(&memory_, size_ * sizeof(T)), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(memory_, host.data(), size_ * sizeof(T), cudaMemcpyHostToDevice),
              cudaSuccess);
  }
  explicit GpuTensor(std::size_t size) : GpuTensor(std::vector<double>(size, NAN)) {}
  ~GpuTensor() { (void)cudaFree(memory_); }
  GpuTensor(const GpuTensor&) = delete;
  GpuTensor& operator=(const GpuTensor&) = delete;
  T* get() const { return static_cast<T*>(memory_); }
  std::vector<double> read() const { return read_gpu<T>(memory_, size_); }

 private:
  void* memory_ = nullptr;
  std::size_t size_;
};
using Floats = GpuTensor<float>;

/// Pseudo-random numbers from -1 to 1 that each element type up to bf16 holds exactly.
inline std::vector<double> numbers(std::size_t count, std::uint64_t seed) {
  std::vector<double> out;
  for (std::size_t i = 0; i < count; ++i) {
    out.push_back(static_cast<double>(kernels::random_bits(seed, i) % 257) / 128 - 1);
  }
  return out;
}

/// The largest distance, over the wanted number's size where that is above 1, is below `tolerance`.
inline void expect_near(const std::vector<double>& got, const std::vector<double>& wanted,
                        double tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double distance = std::abs(got[i] - wanted[i]) / std::max(1.0, std::abs(wanted[i]));
    ASSERT_FALSE(std::isnan(distance)) << "element " << i << " is " << got[i];
    worst = std::max(worst, distance);
  }
  EXPECT_LT(worst, tolerance);
}

}  // namespace lockstep::testing
