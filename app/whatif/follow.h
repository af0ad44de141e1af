#pragma once

#include <chrono>
#include <string>

#include "analysis/whatif/job_analysis.h"
#include "app/whatif/follow_journal.h"
#include "base/error.h"

namespace lockstep {

struct FollowOptions {
  std::string folder, meta, output;
  AlertRule alert;
  std::chrono::milliseconds poll{1000};
  std::chrono::milliseconds settle{2000};  ///< a file that has not changed for so long has landed
  bool once = false;                       ///< what lies in the folder now, and no more
  bool json = false;  ///< events as JSON lines on standard output, instead of text
  bool drop_incomplete_steps = false;
  whatif::AnalysisOptions analysis;
};

/// Analyses the trace files of a folder as they land, each on its own, until SIGINT or SIGTERM.
///
/// A file has landed when its size and time of change are those of the scan before; names that
/// begin with a dot or do not end in .parquet or .csv are passed over. Each file holds whole steps;
/// a step counts once, in the first file that has it. After each file the documents (heat maps,
/// causes, …) in the output folder are those of that file; the journal follow-NAME.jsonl keeps
/// every step. A file that cannot be used is named on standard error and in the journal, and passed
/// over until it changes. ERRORS: the folder or the meta file cannot be read, the output cannot be
/// written.
ExitCode follow(const FollowOptions& options);

}  // namespace lockstep
