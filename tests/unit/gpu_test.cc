// Kernels that have one element type, or are told exactly in one, against double precision on the
// CPU; those in every type are in gpu_types_test.cc. Skipped, and said so, where there is no GPU.
#include <vector>

#include <gtest/gtest.h>

#include "profiler/cuda/launch.h"
#include "profiler/kernels/reference.h"
#include "tests/support/gpu_tensors.h"

namespace lockstep::gpu_test {
namespace {

using cuda::Element;
using testing::expect_near;
using testing::Floats;
using testing::numbers;
using Gpu = testing::GpuTest;

TEST_F(Gpu, RotaryTurnsAndTurnsBack) {
  const std::size_t rows = 9, heads = 2, dim = 64;
  const auto x = numbers(rows * heads * dim, 8);
  const Floats in(x), out(x.size()), table(rows * dim);
  cuda::rotary_table(table.get(), rows, dim, 10000, nullptr);
  cuda::RotaryArguments a;
  a.x = in.get();
  a.y = out.get();
  a.table = table.get();
  a.rows = rows;
  a.heads = heads;
  a.head_dim = dim;
  cuda::rotary(Element::kFp32, false, a, nullptr);
  expect_near(out.read(), reference::rotary(x, heads, dim, 10000, 1), 1e-6);
  a.x = out.get();
  cuda::rotary(Element::kFp32, true, a, nullptr);
  expect_near(out.read(), x, 1e-6);
}

TEST_F(Gpu, RouterFindsTheLikeliest) {
  const std::size_t rows = 33, experts = 64, topk = 8;
  const auto logits = numbers(rows * experts, 9);
  const Floats in(logits), p(logits.size()), chosen(rows * topk);
  cuda::RouterArguments a;
  a.logits = in.get();
  a.probabilities = p.get();
  a.experts = reinterpret_cast<std::int32_t*>(chosen.get());
  a.rows = rows;
  a.count = experts;
  a.topk = topk;
  cuda::router(false, a, nullptr);
  const auto wanted = reference::route(logits, experts, topk);
  expect_near(p.read(), wanted.probabilities, 1e-6);
  std::vector<std::int32_t> got(rows * topk);
  ASSERT_EQ(cudaMemcpy(got.data(), chosen.get(), got.size() * 4, cudaMemcpyDeviceToHost),
            cudaSuccess);
  EXPECT_EQ(got, wanted.experts);
}

TEST_F(Gpu, AdamFollowsTheReference) {
  const std::size_t n = 1003;
  const auto parameter = numbers(n, 11), gradient = numbers(n, 12);
  const std::vector<double> none(n, 0.0);
  const Floats p(parameter), g(gradient), m(none), v(none), copy(n);
  cuda::AdamArguments a;
  a.gradient = g.get();
  a.parameter = p.get();
  a.first = m.get();
  a.second = v.get();
  a.copy = copy.get();
  a.elements = n;
  a.constants.correction1 = 1 - a.constants.beta1;
  a.constants.correction2 = 1 - a.constants.beta2;
  cuda::adam(Element::kFp32, a, nullptr);
  std::vector<double> wanted;
  for (std::size_t i = 0; i < n; ++i) {
    wanted.push_back(
        reference::adam({parameter[i], 0, 0}, gradient[i], {1e-4, 0.9, 0.95, 1e-8, 0.1, 1})
            .parameter);
  }
  expect_near(p.read(), wanted, 1e-6);
}

}  // namespace
}  // namespace lockstep::gpu_test
