#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/json.h"

namespace lockstep::compare {

/// Statistics of relative errors of times: predicted / measured - 1.
struct ErrorStatistics {
  std::size_t rows = 0;
  double median = 0;  ///< of the sizes of the errors
  double p90 = 0;     ///< 90 % of the sizes are at most so large
  double bias = 0;    ///< geometric mean of predicted / measured, less 1
  double worst = 0;   ///< the error of the largest size, with its sign
};

/// O(n log n). The median is the mean of the middle two for even n; p90 the value at floor(0.9 n),
/// at most the last.
ErrorStatistics error_statistics(const std::vector<double>& errors);

/// The middle value, or the mean of the two middle ones; 0 of nothing. O(n log n).
double median(std::vector<double> values);

/// Percent with one digit and a sign where asked: "+4.2 %".
std::string percent(double share, bool sign = false);

/// rows, median_error, p90_error, bias, worst_error.
Json to_json(const ErrorStatistics& errors);

}  // namespace lockstep::compare
