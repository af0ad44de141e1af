#include "profiler/statistics.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr double kOutlierScore = 3.5;    // Iglewicz and Hoaglin
constexpr double kNormalMad = 1.4826;    // a normal distribution's deviation over its MAD
constexpr double kLeastMadShare = 1e-3;  // of the median

void check(std::span<const double> samples) {
  if (samples.empty()) {
    throw Error("there are no samples");
  }
  for (const double sample : samples) {
    if (!(sample >= 0) || !std::isfinite(sample)) {
      throw Error("a sample of " + std::to_string(sample) + " s").expected("seconds from 0 on");
    }
  }
}

}  // namespace

double quantile(std::span<const double> ascending, double q) {
  const double place = q * static_cast<double>(ascending.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, ascending.size() - 1);
  const double part = place - static_cast<double>(below);
  return ascending[below] + part * (ascending[above] - ascending[below]);
}

SampleSummary summarise(std::span<const double> samples) {
  check(samples);
  std::vector<double> sorted(samples.begin(), samples.end());
  std::ranges::sort(sorted);
  SampleSummary summary;
  summary.samples = sorted.size();
  summary.least = sorted.front();
  summary.most = sorted.back();
  summary.low = quantile(sorted, 0.25);
  summary.median = quantile(sorted, 0.5);
  summary.high = quantile(sorted, 0.75);
  const auto count = static_cast<double>(sorted.size());
  for (const double sample : samples) {
    summary.mean += sample / count;
  }
  double square = 0;
  for (const double sample : samples) {
    square += (sample - summary.mean) * (sample - summary.mean) / count;
  }
  summary.deviation = std::sqrt(square);
  std::vector<double> distances;
  for (const double sample : samples) {
    distances.push_back(std::abs(sample - summary.median));
  }
  std::vector<double> ascending = distances;
  std::ranges::sort(ascending);
  const double mad = std::max(quantile(ascending, 0.5), kLeastMadShare * summary.median);
  for (std::size_t i = 0; i < distances.size(); ++i) {
    if (distances[i] > kOutlierScore * kNormalMad * mad) {
      summary.outliers.push_back(i);
    }
  }
  return summary;
}

AiobSummary aiob_summary(std::span<const double> samples) {
  check(samples);
  AiobSummary summary;
  summary.least = *std::ranges::min_element(samples);
  double sum = 0;
  std::size_t kept = 0;
  for (const double sample : samples) {
    if (sample <= 3 * summary.least) {
      sum += sample;
      summary.most = std::max(summary.most, sample);
      ++kept;
    }
  }
  summary.mean = sum / static_cast<double>(kept);
  return summary;
}

}  // namespace lockstep
