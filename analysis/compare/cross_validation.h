#pragma once

#include <vector>

#include "analysis/compare/rates_fit.h"

namespace lockstep::compare {

/// What rows that were left out tell of rates: sizes of log(predicted / measured).
struct ValidatedError {
  double mean = 0;  ///< rows of 1 MiB and more counting fivefold, none more than a factor of two
  double p90 = 0;   ///< of the rows of 1 MiB and more; of all if there are none

  /// A lower mean, whose gain what the tail may lose does not outweigh.
  bool better_than(const ValidatedError& other) const {
    return mean < other.mean && mean * p90 <= other.mean * other.p90;
  }
};

/// Rows in parts, each of which is left out in turn to judge what the others say of it: every fifth
/// table by id, or every fifth size where there are fewer than five tables.
class CrossValidation {
 public:
  explicit CrossValidation(const std::vector<const ComparedRow*>& rows);

  /// Of rates that were fitted without the rows' part. O(parts) fits.
  ValidatedError error(const std::vector<const NcclRateField*>& fields, const NcclSystem& start,
                       double spread) const;

  /// Of rates that are not fitted.
  ValidatedError error(const NcclSystem& system) const;

 private:
  struct Part {
    std::vector<const ComparedRow*> rows, others;
  };
  std::vector<Part> parts_;
};

}  // namespace lockstep::compare
