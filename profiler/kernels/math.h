#pragma once

// Arithmetic of the fused kernels, element by element: the same functions run on the GPU and, in
// the tests, on the CPU. All in fp32; what is stored in 16 bits is rounded where it is stored.

#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define LOCKSTEP_HD __host__ __device__ __forceinline__
#else
#define LOCKSTEP_HD inline
#endif

namespace lockstep::kernels {

/// exp and a quotient by the GPU's units for them: to a few units in the last place near 0, less
/// far from it.
LOCKSTEP_HD float fast_exp(float x) {
#ifdef __CUDA_ARCH__
  return __expf(x);
#else
  return expf(x);
#endif
}
LOCKSTEP_HD float fast_divide(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fdividef(a, b);
#else
  return a / b;
#endif
}

/// 1 / standard deviation as LayerNorm has it, of a mean of squared distances from the mean;
/// RMSNorm takes the mean as 0 (Zhang and Sennrich 2019).
LOCKSTEP_HD float reciprocal_deviation(float mean_square, float epsilon) {
  return 1.0F / sqrtf(mean_square + epsilon);
}
/// (x - mean) / deviation · gamma + beta; for RMSNorm mean and beta are 0.
LOCKSTEP_HD float norm_forward(float x, float mean, float reciprocal, float gamma, float beta) {
  return (x - mean) * reciprocal * gamma + beta;
}
/// dx = (g - mean(g) - xhat mean(g xhat)) / deviation with g = dy gamma; RMSNorm without mean(g).
LOCKSTEP_HD float norm_backward(float g, float xhat, float reciprocal, float mean_g,
                                float mean_g_xhat) {
  return reciprocal * (g - mean_g - xhat * mean_g_xhat);
}

constexpr float kSqrtHalf = 0.70710678118654752F;
constexpr float kReciprocalSqrtTwoPi = 0.39894228040143268F;

/// x Φ(x), with the error function (Hendrycks and Gimpel 2016).
LOCKSTEP_HD float gelu_forward(float x) { return 0.5F * x * (1.0F + erff(x * kSqrtHalf)); }
LOCKSTEP_HD float gelu_backward(float x, float dy) {
  const float below = 0.5F * (1.0F + erff(x * kSqrtHalf));
  return dy * (below + x * kReciprocalSqrtTwoPi * fast_exp(-0.5F * x * x));
}

LOCKSTEP_HD float sigmoid(float x) { return fast_divide(1.0F, 1.0F + fast_exp(-x)); }
/// silu(gate) · up (Shazeer 2020).
LOCKSTEP_HD float swiglu_forward(float gate, float up) { return gate * sigmoid(gate) * up; }
struct GatedGradient {
  float gate = 0, up = 0;
};
LOCKSTEP_HD GatedGradient swiglu_backward(float gate, float up, float dy) {
  const float s = sigmoid(gate);
  GatedGradient gradient;
  gradient.gate = dy * up * s * (1.0F + gate * (1.0F - s));
  gradient.up = dy * gate * s;
  return gradient;
}

/// A pair of features turned by an angle (Su et al. 2021); backward by its negative.
struct Pair {
  float a = 0, b = 0;
};
LOCKSTEP_HD Pair rotate(Pair x, float cosine, float sine) {
  Pair y;
  y.a = x.a * cosine - x.b * sine;
  y.b = x.a * sine + x.b * cosine;
  return y;
}

/// Largest element and sum of exp(element - largest), of elements seen one by one (Milakov and
/// Gimelshein 2018).
struct SoftmaxSum {
  float largest = -INFINITY, sum = 0;
};
LOCKSTEP_HD SoftmaxSum merge(SoftmaxSum a, SoftmaxSum b) {
  SoftmaxSum both;
  both.largest = fmaxf(a.largest, b.largest);
  if (both.largest == -INFINITY) {
    return both;
  }
  both.sum = a.sum * expf(a.largest - both.largest) + b.sum * expf(b.largest - both.largest);
  return both;
}
LOCKSTEP_HD SoftmaxSum add(SoftmaxSum a, float x) {
  SoftmaxSum one;
  one.largest = x;
  one.sum = 1;
  return merge(a, one);
}
LOCKSTEP_HD float probability(float x, SoftmaxSum all) {
  return all.sum > 0 ? expf(x - all.largest) / all.sum : 0.0F;
}
/// Gradient of a scaled softmax's input: scale p (dp - Σ p dp).
LOCKSTEP_HD float softmax_backward(float p, float dp, float dot, float scale) {
  return scale * p * (dp - dot);
}

/// -log of the target's probability.
LOCKSTEP_HD float cross_entropy(float target, SoftmaxSum all) {
  return logf(all.sum) + all.largest - target;
}
LOCKSTEP_HD float cross_entropy_backward(float p, bool is_target, float scale) {
  return (p - (is_target ? 1.0F : 0.0F)) * scale;
}

/// One step of Adam with decoupled weight decay (Loshchilov and Hutter 2019).
struct AdamConstants {
  float rate = 1e-4F, beta1 = 0.9F, beta2 = 0.95F, epsilon = 1e-8F, decay = 0.1F;
  float correction1 = 1, correction2 = 1;  ///< 1 - beta^step
};
struct AdamState {
  float parameter = 0, first = 0, second = 0;
};
LOCKSTEP_HD AdamState adam(AdamState state, float gradient, const AdamConstants& c) {
  state.first = c.beta1 * state.first + (1.0F - c.beta1) * gradient;
  state.second = c.beta2 * state.second + (1.0F - c.beta2) * gradient * gradient;
  const float first = state.first / c.correction1;
  const float deviation = sqrtf(state.second / c.correction2) + c.epsilon;
  state.parameter -= c.rate * (first / deviation + c.decay * state.parameter);
  return state;
}

/// 32 random bits of an element (the finaliser of SplitMix64: Steele, Lea and Flood 2014).
LOCKSTEP_HD std::uint32_t random_bits(std::uint64_t seed, std::uint64_t element) {
  std::uint64_t z = seed + (element + 1) * 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return static_cast<std::uint32_t>((z ^ (z >> 31)) >> 32);
}
/// Whether dropout keeps an element: with probability 1 - drop / 2^32.
LOCKSTEP_HD bool keeps(std::uint64_t seed, std::uint64_t element, std::uint32_t drop) {
  return random_bits(seed, element) >= drop;
}

}  // namespace lockstep::kernels
