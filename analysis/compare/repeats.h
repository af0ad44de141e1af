#pragma once

#include <vector>

#include "analysis/compare/errors.h"
#include "analysis/compare/predict.h"

namespace lockstep::compare {

/// How far measurements are from others that are alike in all that a model is given. Of rows of 1
/// MiB and more.
struct Repeats {
  /// From the median of the other half's rows of the same operation, size, GPUs, servers, release,
  /// ways, links and GDRCopy: what a table of all that was measured in one half would be off by on
  /// the other.
  ErrorStatistics other_half;
  /// From the median rate of the rows of their own table whose size is within a quarter, of three
  /// and more, in place and out of place: a table that jumps between neighbours cannot be met by
  /// times that grow with the bytes.
  ErrorStatistics own_table;
  /// The most rows that can be within 12 % if each such key has one predicted time, whatever it is:
  /// a bound on every model that is given no more. Of all rows whose key is in several tables.
  double within_reach = 0;
  std::size_t repeated = 0;  ///< rows of those keys
};

/// The halves are every second table by id, as calibrate's. O(n log n), and O(n^2) in a table.
Repeats repeats_of(const std::vector<ComparedRow>& rows);

}  // namespace lockstep::compare
