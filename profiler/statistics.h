#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace lockstep {

/// What repeated timings of one operator say. Times are in seconds.
struct SampleSummary {
  std::size_t samples = 0;
  double least = 0, most = 0, mean = 0, deviation = 0;  ///< of all samples; population deviation
  double low = 0, median = 0, high = 0;                 ///< quartiles of all samples
  std::vector<std::size_t> outliers;                    ///< their places, ascending

  double spread() const { return high - low; }
};

/// Quartiles are linear between the two nearest samples (Hyndman and Fan 1996, definition 7). A
/// sample is an outlier if its distance from the median is above 3.5 times 1.4826 MAD (the modified
/// z-score of Iglewicz and Hoaglin 1993, section 3.2), where the median absolute deviation counts
/// as at least a thousandth of the median: timers tick. The median and the quartiles keep outliers,
/// which hardly move them; means are of all samples. O(n log n).
/// ERRORS: no samples, one that is negative or not finite.
SampleSummary summarise(std::span<const double> samples);

/// The quantile of ascending samples. PRECONDITION: not empty, 0 <= q <= 1.
double quantile(std::span<const double> ascending, double q);

/// AICB's own cleaning of AIOB's samples: those above three times the least are dropped; most and
/// mean of the others (specification of AICB, section 3).
struct AiobSummary {
  double most = 0, least = 0, mean = 0;
};
/// ERRORS: as summarise().
AiobSummary aiob_summary(std::span<const double> samples);

}  // namespace lockstep
