#include "analysis/goodput/interval.h"

#include <cmath>

namespace lockstep {

double young_interval_s(const CheckpointCosts& costs) {
  return std::sqrt(2 * costs.checkpoint_s * costs.mtbf_s);
}

double daly_interval_s(const CheckpointCosts& costs) {
  const double c = costs.checkpoint_s, m = costs.mtbf_s;
  if (c >= 2 * m) {
    return m;
  }
  return young_interval_s(costs) * (1 + std::sqrt(c / (2 * m)) / 3 + c / (18 * m)) - c;
}

double exact_interval_s(const CheckpointCosts& costs) {
  if (costs.checkpoint_s <= 0) {
    return 0;
  }
  // In units of the mean time: falls from 1 - e^-c > 0 at 0 to below 0 at 1.
  const double c = costs.checkpoint_s / costs.mtbf_s;
  double low = 0, high = 1;
  for (;;) {
    const double middle = (low + high) / 2;
    if (middle <= low || middle >= high) {
      return middle * costs.mtbf_s;
    }
    // expm1 keeps the difference where both are small.
    (-std::expm1(-(middle + c)) > middle ? low : high) = middle;
  }
}

double expected_segment_s(const CheckpointCosts& costs, double work_s) {
  return costs.mtbf_s * std::exp(costs.restart_s / costs.mtbf_s) *
         std::expm1((work_s + costs.checkpoint_s) / costs.mtbf_s);
}

}  // namespace lockstep
