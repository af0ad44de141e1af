#pragma once

#include <vector>

#include "analysis/compare/errors.h"
#include "analysis/compare/predict.h"

namespace lockstep::compare {

/// How far measurements are from others that are alike in all that a model is given: the least
/// error that any model can have on them. Of rows of 1 MiB and more.
struct Repeats {
  /// From the median of the other half's rows of the same operation, size, GPUs, servers, release
  /// and ways: what a table of all that was measured in one half would be off by on the other.
  ErrorStatistics other_half;
  /// From the median rate of the rows of their own table whose size is within a quarter, of three
  /// and more, in place and out of place: a table that jumps between neighbours cannot be met by
  /// times that grow with the bytes.
  ErrorStatistics own_table;
};

/// The halves are every second table by id, as calibrate's. O(n log n), and O(n^2) in a table.
Repeats repeats_of(const std::vector<ComparedRow>& rows);

}  // namespace lockstep::compare
