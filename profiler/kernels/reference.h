#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::reference {

// What the fused kernels compute, in double precision and without a trick: the tests' yardstick.
// Matrices are row by row.

/// y = (x - mean) / sqrt(variance + epsilon) · gamma + beta; RMSNorm with mean 0 and without beta.
std::vector<double> norm_forward(std::span<const double> x, std::span<const double> gamma,
                                 std::span<const double> beta, bool rms, double epsilon);

struct NormGradient {
  std::vector<double> x, gamma, beta;
};
NormGradient norm_backward(std::span<const double> x, std::span<const double> gamma,
                           std::span<const double> dy, bool rms, double epsilon);

double gelu(double x);
double gelu_derivative(double x);
double swiglu(double gate, double up);

/// Of `rows` rows of `keys` scores; row r of a causal mask sees keys 0 … keys - queries + (r mod
/// queries).
std::vector<double> softmax(std::span<const double> scores, std::size_t queries, std::size_t keys,
                            bool causal, double scale);
/// Gradient of the scores from that of the probabilities.
std::vector<double> softmax_gradient(std::span<const double> probabilities,
                                     std::span<const double> gradient, std::size_t keys,
                                     double scale);

/// Rows' losses against their targets.
std::vector<double> cross_entropy(std::span<const double> logits,
                                  std::span<const std::int32_t> targets, std::size_t vocabulary);
std::vector<double> cross_entropy_gradient(std::span<const double> logits,
                                           std::span<const std::int32_t> targets,
                                           std::size_t vocabulary, double scale);

/// Positions turn the first half of the features against the second: pair i by the angle position /
/// base^(2i / head_dim). `sign` -1 for the gradient.
std::vector<double> rotary(std::span<const double> x, std::size_t heads, std::size_t head_dim,
                           double base, double sign);

struct Routing {
  std::vector<double> probabilities;  ///< rows x experts
  std::vector<std::int32_t> experts;  ///< rows x topk, the likeliest first; ties: lower number
};
Routing route(std::span<const double> logits, std::size_t experts, std::size_t topk);

struct Adam {
  double rate, beta1, beta2, epsilon, decay;
  int step;
};
struct AdamValues {
  double parameter, first, second;
};
AdamValues adam(AdamValues values, double gradient, const Adam& constants);

/// softmax(q kᵀ / sqrt(head_dim)) v for one head: queries x head_dim, keys x head_dim, keys x
/// value_dim.
std::vector<double> attention(std::span<const double> q, std::span<const double> k,
                              std::span<const double> v, std::size_t head_dim,
                              std::size_t value_dim, bool causal);

/// a (m x k) times b (k x n).
std::vector<double> product(std::span<const double> a, std::span<const double> b, std::size_t m,
                            std::size_t n, std::size_t k);

}  // namespace lockstep::reference
