#include "profiler/kernels/reference.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lockstep::reference {
namespace {

struct RowStatistics {
  double mean = 0, deviation = 1;
};

RowStatistics statistics(std::span<const double> row, bool rms, double epsilon) {
  RowStatistics s;
  const auto n = static_cast<double>(row.size());
  if (!rms) {
    for (const double x : row) {
      s.mean += x / n;
    }
  }
  double variance = 0;
  for (const double x : row) {
    variance += (x - s.mean) * (x - s.mean) / n;
  }
  s.deviation = std::sqrt(variance + epsilon);
  return s;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

std::vector<double> norm_forward(std::span<const double> x, std::span<const double> gamma,
                                 std::span<const double> beta, bool rms, double epsilon) {
  const std::size_t width = gamma.size();
  std::vector<double> y(x.size());
  for (std::size_t row = 0; row < x.size(); row += width) {
    const RowStatistics s = statistics(x.subspan(row, width), rms, epsilon);
    for (std::size_t i = 0; i < width; ++i) {
      y[row + i] = (x[row + i] - s.mean) / s.deviation * gamma[i] + (rms ? 0 : beta[i]);
    }
  }
  return y;
}

NormGradient norm_backward(std::span<const double> x, std::span<const double> gamma,
                           std::span<const double> dy, bool rms, double epsilon) {
  const std::size_t width = gamma.size();
  NormGradient out{std::vector<double>(x.size()), std::vector<double>(width, 0.0),
                   std::vector<double>(width, 0.0)};
  for (std::size_t row = 0; row < x.size(); row += width) {
    const RowStatistics s = statistics(x.subspan(row, width), rms, epsilon);
    double mean_g = 0, mean_gx = 0;
    for (std::size_t i = 0; i < width; ++i) {
      const double xhat = (x[row + i] - s.mean) / s.deviation;
      const double g = dy[row + i] * gamma[i];
      mean_g += rms ? 0 : g / static_cast<double>(width);
      mean_gx += g * xhat / static_cast<double>(width);
      out.gamma[i] += dy[row + i] * xhat;
      out.beta[i] += dy[row + i];
    }
    for (std::size_t i = 0; i < width; ++i) {
      const double xhat = (x[row + i] - s.mean) / s.deviation;
      out.x[row + i] = (dy[row + i] * gamma[i] - mean_g - xhat * mean_gx) / s.deviation;
    }
  }
  return out;
}

double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2)); }

double gelu_derivative(double x) {
  const double density = std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
  return 0.5 * (1 + std::erf(x / std::numbers::sqrt2)) + x * density;
}

double swiglu(double gate, double up) { return gate * sigmoid(gate) * up; }

std::vector<double> softmax(std::span<const double> scores, std::size_t queries, std::size_t keys,
                            bool causal, double scale) {
  std::vector<double> p(scores.size(), 0.0);
  for (std::size_t row = 0; row * keys < scores.size(); ++row) {
    const std::size_t seen = causal ? keys - queries + row % queries + 1 : keys;
    double largest = -INFINITY;
    for (std::size_t i = 0; i < seen; ++i) {
      largest = std::max(largest, scale * scores[row * keys + i]);
    }
    double sum = 0;
    for (std::size_t i = 0; i < seen; ++i) {
      sum += p[row * keys + i] = std::exp(scale * scores[row * keys + i] - largest);
    }
    for (std::size_t i = 0; i < seen; ++i) {
      p[row * keys + i] /= sum;
    }
  }
  return p;
}

std::vector<double> softmax_gradient(std::span<const double> probabilities,
                                     std::span<const double> gradient, std::size_t keys,
                                     double scale) {
  std::vector<double> ds(probabilities.size());
  for (std::size_t row = 0; row < probabilities.size(); row += keys) {
    double dot = 0;
    for (std::size_t i = 0; i < keys; ++i) {
      dot += probabilities[row + i] * gradient[row + i];
    }
    for (std::size_t i = 0; i < keys; ++i) {
      ds[row + i] = scale * probabilities[row + i] * (gradient[row + i] - dot);
    }
  }
  return ds;
}

std::vector<double> cross_entropy(std::span<const double> logits,
                                  std::span<const std::int32_t> targets, std::size_t vocabulary) {
  const std::vector<double> p = softmax(logits, targets.size(), vocabulary, false, 1);
  std::vector<double> losses;
  for (std::size_t row = 0; row < targets.size(); ++row) {
    losses.push_back(-std::log(p[row * vocabulary + static_cast<std::size_t>(targets[row])]));
  }
  return losses;
}

std::vector<double> cross_entropy_gradient(std::span<const double> logits,
                                           std::span<const std::int32_t> targets,
                                           std::size_t vocabulary, double scale) {
  std::vector<double> g = softmax(logits, targets.size(), vocabulary, false, 1);
  for (std::size_t row = 0; row < targets.size(); ++row) {
    g[row * vocabulary + static_cast<std::size_t>(targets[row])] -= 1;
  }
  for (double& value : g) {
    value *= scale;
  }
  return g;
}

std::vector<double> rotary(std::span<const double> x, std::size_t heads, std::size_t head_dim,
                           double base, double sign) {
  std::vector<double> y(x.size());
  const std::size_t half = head_dim / 2, width = heads * head_dim;
  for (std::size_t position = 0; position * width < x.size(); ++position) {
    for (std::size_t head = 0; head < heads; ++head) {
      const std::size_t at = position * width + head * head_dim;
      for (std::size_t i = 0; i < half; ++i) {
        const double angle =
            sign * static_cast<double>(position) /
            std::pow(base, 2 * static_cast<double>(i) / static_cast<double>(head_dim));
        const double a = x[at + i], b = x[at + half + i];
        y[at + i] = a * std::cos(angle) - b * std::sin(angle);
        y[at + half + i] = a * std::sin(angle) + b * std::cos(angle);
      }
    }
  }
  return y;
}

Routing route(std::span<const double> logits, std::size_t experts, std::size_t topk) {
  Routing routing;
  routing.probabilities = softmax(logits, logits.size() / experts, experts, false, 1);
  std::vector<std::int32_t> order(experts);
  for (std::size_t row = 0; row < logits.size(); row += experts) {
    for (std::size_t i = 0; i < experts; ++i) {
      order[i] = static_cast<std::int32_t>(i);
    }
    std::ranges::stable_sort(order, [&](std::int32_t a, std::int32_t b) {
      return logits[row + static_cast<std::size_t>(a)] > logits[row + static_cast<std::size_t>(b)];
    });
    routing.experts.insert(routing.experts.end(), order.begin(),
                           order.begin() + static_cast<std::ptrdiff_t>(topk));
  }
  return routing;
}

AdamValues adam(AdamValues values, double gradient, const Adam& c) {
  values.first = c.beta1 * values.first + (1 - c.beta1) * gradient;
  values.second = c.beta2 * values.second + (1 - c.beta2) * gradient * gradient;
  const double first = values.first / (1 - std::pow(c.beta1, c.step));
  const double second = values.second / (1 - std::pow(c.beta2, c.step));
  values.parameter -=
      c.rate * (first / (std::sqrt(second) + c.epsilon) + c.decay * values.parameter);
  return values;
}

std::vector<double> product(std::span<const double> a, std::span<const double> b, std::size_t m,
                            std::size_t n, std::size_t k) {
  std::vector<double> c(m * n, 0.0);
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t l = 0; l < k; ++l) {
      for (std::size_t j = 0; j < n; ++j) {
        c[i * n + j] += a[i * k + l] * b[l * n + j];
      }
    }
  }
  return c;
}

std::vector<double> attention(std::span<const double> q, std::span<const double> k,
                              std::span<const double> v, std::size_t head_dim,
                              std::size_t value_dim, bool causal) {
  const std::size_t queries = q.size() / head_dim, keys = k.size() / head_dim;
  std::vector<double> transposed(k.size());
  for (std::size_t i = 0; i < keys; ++i) {
    for (std::size_t j = 0; j < head_dim; ++j) {
      transposed[j * keys + i] = k[i * head_dim + j];
    }
  }
  const std::vector<double> scores = product(q, transposed, queries, keys, head_dim);
  const std::vector<double> p =
      softmax(scores, queries, keys, causal, 1 / std::sqrt(static_cast<double>(head_dim)));
  return product(p, v, queries, value_dim, keys);
}

}  // namespace lockstep::reference
