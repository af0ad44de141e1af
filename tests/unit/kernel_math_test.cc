// The arithmetic of the fused kernels on the CPU against double precision, and that against figures
// worked out by hand.
#include <algorithm>
#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiler/kernels/math.h"
#include "profiler/kernels/reference.h"

namespace lockstep::kernel_math_test {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

/// Distance in units of the last place of an fp32 number of that size, at least of `floor`.
double ulps(float got, double wanted, double floor = 1e-30) {
  const double size = std::max(std::abs(wanted), floor);
  return std::abs(static_cast<double>(got) - wanted) / (size * 0x1p-23);
}

std::vector<float> some_numbers(int count, std::uint64_t seed, float scale) {
  std::vector<float> out;
  for (int i = 0; i < count; ++i) {
    const auto bits = kernels::random_bits(seed, static_cast<std::uint64_t>(i));
    out.push_back(scale * (static_cast<float>(bits) * 0x1p-31F - 1));
  }
  return out;
}

TEST(Reference, LayerNormByHand) {
  // 1 and 3: mean 2, variance 1: -1 and 1, times 2 and 3, plus 10 and 20.
  const std::vector<double> x{1, 3}, gamma{2, 3}, beta{10, 20};
  EXPECT_THAT(reference::norm_forward(x, gamma, beta, false, 0), ElementsAre(8, 23));
  // RMS of 3 and 4 over 2 elements: sqrt(12.5).
  const std::vector<double> y{3, 4}, ones{1, 1};
  EXPECT_THAT(
      reference::norm_forward(y, ones, {}, true, 0),
      ElementsAre(DoubleNear(3 / std::sqrt(12.5), 1e-15), DoubleNear(4 / std::sqrt(12.5), 1e-15)));
}

TEST(Reference, NormGradientIsTheSlope) {
  const std::vector<double> x{0.3, -1.2, 0.7, 2.0}, gamma{1.5, 0.5, -1, 2}, beta(4, 0.1);
  const std::vector<double> dy{0.2, -0.4, 1, 0.3};
  for (const bool rms : {false, true}) {
    const auto loss = [&](const std::vector<double>& at) {
      const auto y = reference::norm_forward(at, gamma, beta, rms, 1e-5);
      double sum = 0;
      for (std::size_t i = 0; i < y.size(); ++i) {
        sum += y[i] * dy[i];
      }
      return sum;
    };
    const auto gradient = reference::norm_backward(x, gamma, dy, rms, 1e-5);
    for (std::size_t i = 0; i < x.size(); ++i) {
      std::vector<double> up = x, down = x;
      up[i] += 1e-6;
      down[i] -= 1e-6;
      EXPECT_NEAR(gradient.x[i], (loss(up) - loss(down)) / 2e-6, 1e-8);
    }
  }
}

TEST(Reference, SoftmaxByHand) {
  // exp(ln 2), exp(ln 6): 1/4 and 3/4; the second of two queries sees both keys, the first one.
  const std::vector<double> scores{5, 9, std::log(2), std::log(6)};
  EXPECT_THAT(reference::softmax(scores, 2, 2, true, 1),
              Pointwise(DoubleNear(1e-15), {1.0, 0.0, 0.25, 0.75}));
  // p (dp - p·dp): p·dp = 0.25 · 1 + 0.75 · 3 = 2.5.
  const std::vector<double> p{0.25, 0.75}, dp{1, 3};
  EXPECT_THAT(reference::softmax_gradient(p, dp, 2, 2),
              Pointwise(DoubleNear(1e-15), {2 * 0.25 * -1.5, 2 * 0.75 * 0.5}));
}

TEST(Reference, LossByHand) {
  const std::vector<double> logits{std::log(1), std::log(3)};
  const std::vector<std::int32_t> target{1};
  EXPECT_NEAR(reference::cross_entropy(logits, target, 2)[0], -std::log(0.75), 1e-15);
  EXPECT_THAT(reference::cross_entropy_gradient(logits, target, 2, 4),
              Pointwise(DoubleNear(1e-15), {1.0, -1.0}));
}

TEST(Reference, RotaryTurnsByThePosition) {
  // One pair, base 1: position p turns (1, 0) by p radians.
  const std::vector<double> x{1, 0, 1, 0};
  EXPECT_THAT(reference::rotary(x, 1, 2, 1, 1),
              Pointwise(DoubleNear(1e-15), {1.0, 0.0, std::cos(1.0), std::sin(1.0)}));
  const auto there = reference::rotary(x, 1, 2, 1, 1);
  EXPECT_THAT(reference::rotary(there, 1, 2, 1, -1), Pointwise(DoubleNear(1e-15), x));
}

TEST(Reference, RoutesToTheLikeliestTiesToTheLower) {
  const std::vector<double> logits{1, 3, 2, 3};
  EXPECT_THAT(reference::route(logits, 4, 3).experts, ElementsAre(1, 3, 2));
}

TEST(Reference, AdamsFirstStepIsTheRate) {
  // After bias correction the first step moves by rate · sign(gradient), but for epsilon.
  const auto after = reference::adam({1, 0, 0}, -3, {0.1, 0.9, 0.99, 0, 0, 1});
  EXPECT_NEAR(after.parameter, 1.1, 1e-12);
  EXPECT_NEAR(after.first, -0.3, 1e-15);
  EXPECT_NEAR(after.second, 0.09, 1e-15);
}

TEST(Reference, AttentionOfEqualKeysIsTheMeanOfValues) {
  // Equal keys: every query takes the mean; a causal first query takes the first value.
  const std::vector<double> q{1, 2}, k{3, 3}, v{10, 20};
  EXPECT_THAT(reference::attention(q, k, v, 1, 1, false), ElementsAre(15, 15));
  EXPECT_THAT(reference::attention(q, k, v, 1, 1, true), ElementsAre(10, 15));
}

TEST(KernelMath, NormsFollowTheReference) {
  const std::vector<float> x = some_numbers(64, 1, 3), gamma = some_numbers(64, 2, 1),
                           beta = some_numbers(64, 3, 1), dy = some_numbers(64, 4, 1);
  const std::vector<double> dx(x.begin(), x.end()), dg(gamma.begin(), gamma.end()),
      db(beta.begin(), beta.end()), ddy(dy.begin(), dy.end());
  for (const bool rms : {false, true}) {
    float mean = 0, square = 0;
    for (const float v : x) {
      mean += rms ? 0 : v / 64;
    }
    for (const float v : x) {
      square += (v - mean) * (v - mean) / 64;
    }
    const float r = kernels::reciprocal_deviation(square, 1e-5F);
    const auto y = reference::norm_forward(dx, dg, db, rms, 1e-5);
    const auto gradient = reference::norm_backward(dx, dg, ddy, rms, 1e-5);
    float mean_g = 0, mean_gx = 0;
    for (std::size_t i = 0; i < 64; ++i) {
      const float g = dy[i] * gamma[i], xhat = (x[i] - mean) * r;
      mean_g += rms ? 0 : g / 64;
      mean_gx += g * xhat / 64;
    }
    for (std::size_t i = 0; i < 64; ++i) {
      EXPECT_LT(ulps(kernels::norm_forward(x[i], mean, r, gamma[i], rms ? 0 : beta[i]), y[i], 1),
                4);
      const float xhat = (x[i] - mean) * r;
      EXPECT_LT(ulps(kernels::norm_backward(dy[i] * gamma[i], xhat, r, mean_g, mean_gx),
                     gradient.x[i], 1),
                4);
    }
  }
}

TEST(KernelMath, ActivationsAreWithinFourUlps) {
  for (double x = -6; x < 6; x += 0.0371) {
    const auto f = static_cast<float>(x);
    // Far left both are differences of numbers near 1: ulps of what they were cut from.
    EXPECT_LT(ulps(kernels::gelu_forward(f), reference::gelu(f), std::abs(x)), 4) << x;
    EXPECT_LT(ulps(kernels::gelu_backward(f, 1), reference::gelu_derivative(f), 1), 4) << x;
    EXPECT_LT(ulps(kernels::swiglu_forward(f, 1.5F), reference::swiglu(f, 1.5)), 4) << x;
    const auto slope = kernels::swiglu_backward(f, 1.5F, 2);
    const double h = 1e-5;
    const double gate =
        2 * (reference::swiglu(f + h, 1.5) - reference::swiglu(f - h, 1.5)) / (2 * h);
    EXPECT_NEAR(slope.gate, gate, 2e-6) << x;
    EXPECT_LT(ulps(slope.up, 2 * reference::swiglu(f, 1)), 4) << x;
  }
}

TEST(KernelMath, SoftmaxSumsMergeInAnyOrder) {
  const std::vector<float> x = some_numbers(300, 9, 20);
  kernels::SoftmaxSum one, even, odd;
  for (std::size_t i = 0; i < x.size(); ++i) {
    one = kernels::add(one, x[i]);
    (i % 2 == 0 ? even : odd) = kernels::add(i % 2 == 0 ? even : odd, x[i]);
  }
  const kernels::SoftmaxSum both = kernels::merge(even, odd);
  EXPECT_EQ(one.largest, both.largest);
  EXPECT_LT(ulps(both.sum, one.sum), 32);
  const std::vector<double> d(x.begin(), x.end());
  const auto p = reference::softmax(d, 1, x.size(), false, 1);
  for (std::size_t i = 0; i < x.size(); ++i) {
    // A difference of up to 40 is rounded by up to 2^-20, and so is its exponential's relative
    // size.
    EXPECT_NEAR(kernels::probability(x[i], both), p[i], 4e-6 * p[i]);
  }
  EXPECT_EQ(kernels::merge(kernels::SoftmaxSum{}, kernels::SoftmaxSum{}).sum, 0);
  EXPECT_EQ(kernels::probability(1, kernels::SoftmaxSum{}), 0);
  const std::vector<std::int32_t> target{7};
  EXPECT_LT(ulps(kernels::cross_entropy(x[7], both),
                 reference::cross_entropy(d, target, x.size())[0], 20),
            8);
}

TEST(KernelMath, AdamFollowsTheReferenceForTenSteps) {
  kernels::AdamConstants c;
  kernels::AdamState got{0.5F, 0, 0};
  reference::AdamValues wanted{0.5, 0, 0};
  for (int step = 1; step <= 10; ++step) {
    c.correction1 = static_cast<float>(1 - std::pow(0.9, step));
    c.correction2 = static_cast<float>(1 - std::pow(0.95, step));
    const float gradient = 0.01F * static_cast<float>(step) * (step % 2 == 0 ? 1.0F : -1.0F);
    got = kernels::adam(got, gradient, c);
    wanted = reference::adam(wanted, gradient, {1e-4, 0.9, 0.95, 1e-8, 0.1, step});
  }
  EXPECT_LT(ulps(got.parameter, wanted.parameter), 8);
  EXPECT_NEAR(got.second / wanted.second, 1, 1e-5);
}

TEST(KernelMath, DropoutKeepsItsShareAndRepeats) {
  int kept = 0;
  for (std::uint64_t i = 0; i < 100000; ++i) {
    kept += kernels::keeps(3, i, static_cast<std::uint32_t>(0.1 * 4294967296.0)) ? 1 : 0;
    EXPECT_EQ(kernels::random_bits(3, i), kernels::random_bits(3, i));
  }
  // Binomial: 90000 ± 5 · 95.
  EXPECT_NEAR(kept, 90000, 475);
}

}  // namespace
}  // namespace lockstep::kernel_math_test
