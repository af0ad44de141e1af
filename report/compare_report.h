#pragma once

#include <string>
#include <vector>

#include "analysis/compare/predict.h"
#include "base/warnings.h"
#include "report/picture/picture.h"

namespace lockstep {

/// Everything a comparison of collectives found.
struct CompareReport {
  std::vector<std::string> logs;
  std::vector<compare::ComparedRow> rows;
  Warnings warnings;  ///< of the logs' readers, each with its file
  Warnings left_out;
  Warnings notes;  ///< what of the logs was left out of the predictions
  compare::CompareWishes wishes;
};

/// A table for each log's table, the statistics, and the rows with the largest errors, explained.
std::string compare_table(const CompareReport& report);

/// "lockstep-compare/1" (docs/formats/compare-json.md).
std::string compare_json(const CompareReport& report);

/// Bus bandwidth over size, measured and predicted, one panel a table of a log (the first twelve).
Picture compare_picture(const CompareReport& report);

}  // namespace lockstep
