#pragma once

#include <string>

#include "app/report_flags.h"
#include "base/error.h"

namespace lockstep {

struct SweepOptions {
  std::string grid;      ///< the file
  std::string output;    ///< folder: journal.jsonl, table.csv, table.parquet
  bool restart = false;  ///< throw away the rows that are there
  bool retry = false;    ///< compute points again that did not end well
  bool keep = false;     ///< keep the files that the points write, in points/NUMBER
  bool list = false;     ///< only print the command lines
  bool json = false;
  ReportFlags report;
};

/// Runs the points of a grid, in this process alone or, under mpirun, on all ranks: dynamically,
/// the longest first by prediction. See docs/scale-out.md.
/// ERRORS: those of the grid; a folder that holds another grid's rows; outputs that cannot be
/// written. A point that fails is a row, no error.
ExitCode run_sweep(const SweepOptions& options);

}  // namespace lockstep
