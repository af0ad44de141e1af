#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "analysis/compare/predict.h"

namespace lockstep::compare {

/// Logarithm of predicted / measured, by a system's rates over the links of the row's own table.
double log_error(const ComparedRow& row, const NcclSystem& system);

/// The least-squares problem for some rates on some rows: of log(predicted / measured) with Huber's
/// weights (k = 0.4 of the residuals' scale by the median), each table counting alike and its rows
/// of 1 MiB and more fivefold; by Levenberg-Marquardt in the logarithms of the rates, within their
/// bounds. What is known beforehand counts too: the logarithm of a rate is as likely near that of
/// the start as a normal distribution of standard deviation `spread` says, in units of the
/// residuals' scale; not where the start is zero. `spread` infinite: nothing is known beforehand.
///
/// A row's way (NcclChoice) stays what it was predicted by. O(rows x rates) a round, 60 rounds at
/// most.
class RatesFit {
 public:
  RatesFit(const std::vector<const ComparedRow*>& rows, std::vector<const NcclRateField*> fields,
           const NcclSystem& start, double spread = INFINITY);

  void run();

  const NcclSystem& system() const { return system_; }

  /// Standard errors of the logarithms, which allow for rows of unequal weight and for outliers;
  /// infinite where the data say nothing.
  std::vector<double> interval_errors();

  /// Which part of what was not known beforehand the rows leave open: 1 where they say nothing, 0
  /// where nothing was known.
  double unknown(std::size_t field);

  /// How many rows depend on a rate: a tenth more of it changes them by half a percent.
  std::size_t rows_that_depend(std::size_t field);

  /// How much the rows depend on a rate together.
  double influence(std::size_t field);

 private:
  using Vector = std::vector<double>;
  using Matrix = std::vector<Vector>;

  Vector standard_errors();  ///< of rows of one variance
  void scan();
  void descend();
  void evaluate(Vector& out, const NcclSystem& system) const;
  double weigh();
  double cost_of(const Vector& residuals, const NcclSystem& system) const;
  double pull(std::size_t field, const NcclSystem& system) const;
  void linearise();

  const std::vector<const ComparedRow*>& rows_;
  std::vector<const NcclRateField*> fields_;
  NcclSystem start_, system_;
  double spread_;
  Vector balance_;  ///< each table counts alike
  Vector residuals_, weights_, gradient_;
  Matrix jacobian_, information_;
  double scale_ = 1;
  bool is_linear_ = false;
};

}  // namespace lockstep::compare
