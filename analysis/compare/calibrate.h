#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/compare/cross_validation.h"
#include "analysis/compare/errors.h"
#include "analysis/compare/predict.h"

namespace lockstep::compare {

/// A number that was fitted, in the file's units.
struct FittedRate {
  std::string name;
  double before = 0, after = 0;
  Interval interval;  ///< 95 %
};

/// Which half of the tables (by table_numbers, every second one) a fit is trained on.
enum class TrainingHalf : std::uint8_t { kFirst, kSecond };

struct Calibration {
  Preset preset;  ///< with the fitted rates, intervals and provenance
  std::vector<FittedRate> fitted;
  std::vector<std::string> left;  ///< rates that the data do not determine, and why
  std::size_t training_tables = 0, held_out_tables = 0;
  ErrorStatistics training, held_out;                           ///< all sizes
  ErrorStatistics training_large, held_out_large;               ///< 1 MiB and more
  ErrorStatistics before_held_out_large;                        ///< of the preset as it was
  std::vector<double> held_out_errors, before_held_out_errors;  ///< of these, row by row
  /// By cross-validation within the training half: of the fitted rates and of the preset's.
  ValidatedError validated, preset_validated;
  bool preset_kept = false;  ///< the fitted ones were no better
};

/// Fits the rates of one cluster to measurements of it (see RatesFit). Trained on every second
/// table (by id; with one table on every second size), judged on the others. Intervals are
/// RatesFit's. Of more than 1500 rows to train on as many are taken, evenly, so that the
/// time stays bounded.
///
/// How far the rates may well be from the preset's (a factor of e^0.05, e^0.2, e^0.8, or anything)
/// is chosen by cross-validation within the training half, and the fitted rates are taken only if
/// they do better there than the preset's (ValidatedError::better_than).
///
/// `names`: which rates, whatever the preset's are; empty: all that the data determine: a rate is
/// left at the preset's where fewer than three rows depend on it (or fewer than there are rates, if
/// they may be anything), where the rows say less of it than the preset does, and where its 95 %
/// interval is wider than a factor of four; one by one, each time fitting the others anew. ERRORS:
/// rows of several presets; named rates that the data do not hold; fewer than six rows.
Calibration calibrate(const std::vector<ComparedRow>& rows, const CompareWishes& wishes,
                      const std::vector<std::string>& names,
                      TrainingHalf half = TrainingHalf::kFirst);

}  // namespace lockstep::compare
