#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "analysis/whatif/op_table.h"
#include "base/warnings.h"
#include "trace/trace.h"

namespace lockstep::whatif {

/// A trace, of one file or several, as the analysis takes it in.
struct LoadedJob {
  OpTable table;
  Trace trace;  ///< sorted rows, for the timelines; none if there are too many of them
};

struct LoadOptions {
  std::span<const StepRange> steps;  ///< to keep; all if empty
  bool drop_incomplete_steps = false;
  /// Above so many rows the trace is taken in step by step and its rows are not kept. Then the rows
  /// of a step must stand together.
  std::size_t most_rows = 20'000'000;
};

/// Reads a trace: the rows of all files together. O(rows) time; 45 bytes a row while they are kept,
/// else 16 to 20 bytes an operation and what one step's rows take. PRECONDITION: there is a file.
/// ERRORS: those of read_trace and make_op_table; no step in a range; a step in two places of a
/// file that is taken in step by step.
LoadedJob load_job(std::span<const std::string> files, const LoadOptions& options,
                   Warnings* warnings);

}  // namespace lockstep::whatif
