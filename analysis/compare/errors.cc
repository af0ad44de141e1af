#include "analysis/compare/errors.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace lockstep::compare {

ErrorStatistics error_statistics(const std::vector<double>& errors) {
  ErrorStatistics statistics;
  statistics.rows = errors.size();
  if (errors.empty()) {
    return statistics;
  }
  std::vector<double> sizes;
  double sum = 0;
  for (const double error : errors) {
    sizes.push_back(std::abs(error));
    sum += std::log(std::max(1 + error, 1e-9));
    if (std::abs(error) > std::abs(statistics.worst)) {
      statistics.worst = error;
    }
  }
  std::ranges::sort(sizes);
  const std::size_t n = sizes.size();
  statistics.median = (sizes[(n - 1) / 2] + sizes[n / 2]) / 2;
  statistics.p90 = sizes[std::min(n - 1, n * 9 / 10)];
  statistics.bias = std::exp(sum / static_cast<double>(n)) - 1;
  return statistics;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t n = values.size();
  return n == 0 ? 0 : (values[(n - 1) / 2] + values[n / 2]) / 2;
}

std::string percent(double share, bool sign) {
  return sign ? fmt::format("{:+.1f} %", 100 * share) : fmt::format("{:.1f} %", 100 * share);
}

Json to_json(const ErrorStatistics& errors) {
  return {{"rows", errors.rows},
          {"median_error", errors.median},
          {"p90_error", errors.p90},
          {"bias", errors.bias},
          {"worst_error", errors.worst}};
}

}  // namespace lockstep::compare
