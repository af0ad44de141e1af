#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/compare/predict.h"
#include "analysis/compare/repeats.h"

namespace lockstep::compare {

/// A cluster's tables fitted by halves (see calibrate): each half is predicted by rates fitted to
/// the other. Rows of 1 MiB and more.
struct HalvesLine {
  std::string system;  ///< the preset, and the cluster where the tables' source tells
  std::size_t tables = 0;
  ErrorStatistics before, after;  ///< by the preset's rates; by those fitted to the other half
  std::size_t kept = 0;           ///< halves for which the preset's rates did no worse: 0, 1 or 2
  /// The same fits from NcclRates' values in place of the preset's, which know of the other half
  /// where they were tuned on it.
  ErrorStatistics from_defaults;
  Repeats repeats;
};

struct ByHalves {
  std::vector<HalvesLine> systems;               ///< the worst 90th percentile first
  ErrorStatistics before, after, from_defaults;  ///< of all their rows
};

/// Of the clusters that have four tables and more. The rows of a cluster are those of one preset
/// and one publisher (CommSetting::source, without what follows its second colon).
ByHalves fit_by_halves(const std::vector<ComparedRow>& rows, const CompareWishes& wishes);

}  // namespace lockstep::compare
