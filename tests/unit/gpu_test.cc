// Kernels on a GPU against the double-precision reference, in fp32. Skipped, and said so, where
// there is none.
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

TEST_F(Gpu, NormsBothWays) {
  for (const std::size_t width : {128U, 4096U}) {
    for (const bool rms : {true, false}) {
      const std::size_t rows = 37;
      const auto x = numbers(rows * width, 1), gamma = numbers(width, 2), beta = numbers(width, 3),
                 dy = numbers(rows * width, 4);
      const Floats gx(x), gg(gamma), gb(beta), gdy(dy), y(x.size()), dx(x.size()), mean(rows),
          reciprocal(rows), dgamma(width), dbeta(width),
          partial(static_cast<std::size_t>(cuda::norm_partials(static_cast<std::int64_t>(rows),
                                                               static_cast<std::int64_t>(width))));
      cuda::NormArguments a;
      a.x = gx.get();
      a.gamma = gg.get();
      a.beta = gb.get();
      a.y = y.get();
      a.mean = mean.get();
      a.reciprocal = reciprocal.get();
      a.dy = gdy.get();
      a.dx = dx.get();
      a.dgamma = dgamma.get();
      a.dbeta = dbeta.get();
      a.partial = partial.get();
      a.rows = static_cast<std::int64_t>(rows);
      a.width = static_cast<std::int64_t>(width);
      a.rms = rms;
      cuda::norm_forward(Element::kFp32, a, nullptr);
      cuda::norm_backward(Element::kFp32, a, nullptr);
      expect_near(y.read(), reference::norm_forward(x, gamma, beta, rms, 1e-5), 1e-5);
      const auto gradient = reference::norm_backward(x, gamma, dy, rms, 1e-5);
      expect_near(dx.read(), gradient.x, 1e-5);
      expect_near(dgamma.read(), gradient.gamma, 2e-5);
      if (!rms) {
        expect_near(dbeta.read(), gradient.beta, 2e-5);
      }
    }
  }
}

TEST_F(Gpu, CausalSoftmaxBothWays) {
  const std::size_t batch = 3, queries = 40, keys = 64;
  const auto scores = numbers(batch * queries * keys, 5), dp = numbers(batch * queries * keys, 6);
  const Floats s(scores), p(scores.size()), g(dp), ds(scores.size());
  cuda::SoftmaxArguments a;
  a.scores = s.get();
  a.probabilities = p.get();
  a.gradient = g.get();
  a.scores_gradient = ds.get();
  a.batch = batch;
  a.queries = queries;
  a.keys = keys;
  a.causal = true;
  a.scale = 0.5F;
  cuda::softmax(Element::kFp32, false, a, nullptr);
  cuda::softmax(Element::kFp32, true, a, nullptr);
  const auto wanted = reference::softmax(scores, queries, keys, true, 0.5);
  expect_near(p.read(), wanted, 1e-6);
  expect_near(ds.read(), reference::softmax_gradient(wanted, dp, keys, 0.5), 1e-6);
}

TEST_F(Gpu, SwigluAndGelu) {
  const std::size_t rows = 5, width = 64;
  const auto x = numbers(rows * 2 * width, 7);
  const Floats in(x), out(rows * width), gelus(x.size());
  cuda::ActivationArguments a;
  a.x = in.get();
  a.y = out.get();
  a.rows = rows;
  a.width = width;
  cuda::swiglu(Element::kFp32, false, a, nullptr);
  std::vector<double> wanted;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < width; ++i) {
      wanted.push_back(reference::swiglu(x[row * 2 * width + i], x[row * 2 * width + width + i]));
    }
  }
  expect_near(out.read(), wanted, 1e-6);
  a.y = gelus.get();
  a.width = 2 * width;
  cuda::gelu(Element::kFp32, false, a, nullptr);
  wanted.clear();
  for (const double v : x) {
    wanted.push_back(reference::gelu(v));
  }
  expect_near(gelus.read(), wanted, 1e-6);
}

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

TEST_F(Gpu, LossBothWays) {
  const std::size_t rows = 3, vocabulary = 1000;
  const auto logits = numbers(rows * vocabulary, 10);
  const std::vector<std::int32_t> targets{0, 999, 123};
  const Floats in(logits), p(logits.size()), losses(rows), gradient(logits.size()),
      place(std::vector<double>(rows, 0.0));
  ASSERT_EQ(cudaMemcpy(place.get(), targets.data(), rows * 4, cudaMemcpyHostToDevice), cudaSuccess);
  cuda::CrossEntropyArguments a;
  a.logits = in.get();
  a.targets = reinterpret_cast<const std::int32_t*>(place.get());
  a.probabilities = p.get();
  a.losses = losses.get();
  a.gradient = gradient.get();
  a.rows = rows;
  a.vocabulary = vocabulary;
  a.scale = 0.25F;
  cuda::cross_entropy(Element::kFp32, false, a, nullptr);
  cuda::cross_entropy(Element::kFp32, true, a, nullptr);
  expect_near(losses.read(), reference::cross_entropy(logits, targets, vocabulary), 1e-5);
  expect_near(gradient.read(), reference::cross_entropy_gradient(logits, targets, vocabulary, 0.25),
              1e-6);
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
