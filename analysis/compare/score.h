#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/compare/errors.h"
#include "analysis/compare/halves.h"
#include "analysis/compare/predict.h"

namespace lockstep::compare {

/// One line of the accuracy board.
struct ScoreLine {
  std::string system, op, band;  ///< band: "< 1 MiB", "1 to 64 MiB", "> 64 MiB", or "all"
  std::string gpus;              ///< "1x8", "2x8"…: servers x ranks of one; "all"
  ErrorStatistics errors;
};

/// How far the model is from all measurements of a folder.
struct Score {
  std::vector<ScoreLine> systems;  ///< the worst first
  std::vector<ScoreLine> groups;   ///< by system, op, GPUs and band; the worst first
  /// The same of further tables of the folder (index_NAME.csv, NAME.csv), which are not in the
  /// sums: their systems begin with NAME. No preset was tuned on them.
  std::vector<ScoreLine> others;
  ErrorStatistics large, small, tables_large, tables_small;
  std::size_t tables = 0, left_out_tables = 0;  ///< the unhealthy among those left out
  std::size_t unhealthy_tables = 0;
  Warnings left_out;
  std::optional<ByHalves> halves;  ///< where asked for
};

/// Scores the model on a folder of measurements: with tables.csv and index.csv those of its healthy
/// tables (and apart from them those of index_NAME.csv and tables_NAME.csv, and other CSVs of
/// collectives), else every log that can be read. Tables count alike in tables_large and
/// tables_small, rows in the others. `halves`: clusters fitted by halves as well (seconds each).
/// ERRORS: no such folder; nothing in it.
Score score_folder(const std::string& folder, const CompareWishes& wishes, bool halves = false);

/// The board as the text of docs/accuracy.md, and as JSON ("lockstep-score/1").
std::string score_markdown(const Score& score);
std::string score_json(const Score& score);

}  // namespace lockstep::compare
