#pragma once

#include <string>
#include <vector>

#include "analysis/compare/errors.h"
#include "analysis/compare/predict.h"

namespace lockstep::compare {

/// A number that was fitted, in the file's units.
struct FittedRate {
  std::string name;
  double before = 0, after = 0;
  Interval interval;  ///< 95 %
};

struct Calibration {
  Preset preset;  ///< with the fitted rates, intervals and provenance
  std::vector<FittedRate> fitted;
  std::vector<std::string> left;  ///< rates that the data do not determine, and why
  std::size_t training_tables = 0, held_out_tables = 0;
  ErrorStatistics training, held_out;              ///< all sizes
  ErrorStatistics training_large, held_out_large;  ///< 1 MiB and more
  ErrorStatistics before_held_out_large;           ///< of the preset as it was
};

/// Fits the rates of one cluster to measurements of it: least squares of log(predicted / measured)
/// with Huber's weights (k = 0.4 of the residuals' scale by the median), each table counting alike
/// and its rows of 1 MiB and more fivefold, Levenberg-Marquardt in the logarithms of the rates,
/// within their bounds; rates without a slope at the start are scanned first. Trained on every
/// second table (by id; with one table on every second row), judged on the others. Intervals come
/// from the information matrix. Of more than 2500 rows to train on as many are taken, evenly, so
/// that the time stays bounded.
///
/// `names`: which rates; empty: all that the data determine: those on each of which depend at least
/// three rows and as many as there are rates (the one with the fewest is dropped first), dropped
/// one by one while a 95 % interval is wider than a factor of four. ERRORS: rows of several
/// presets; named rates that the data do not hold; fewer than six rows.
Calibration calibrate(const std::vector<ComparedRow>& rows, const CompareWishes& wishes,
                      const std::vector<std::string>& names);

}  // namespace lockstep::compare
