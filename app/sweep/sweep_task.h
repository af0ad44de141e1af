#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/isolate/nursery.h"
#include "app/sweep/grid.h"
#include "app/sweep/row.h"

namespace lockstep {

/// One point as it is handed to a rank: all that is needed to compute its row.
struct SweepTask {
  std::int64_t point = 0;
  IsolatedTask command;
  std::vector<std::string> outputs;  ///< wanted keys
  std::string files;                 ///< folder for what the command writes; empty: it writes none
  bool keep = false;                 ///< the folder stays
};

SweepTask sweep_task(const Grid& grid, std::int64_t point, const std::string& output, bool keep);

/// Whether the files that the row's point was to keep are there; true where it keeps none.
bool has_kept_files(const SweepTask& task, const SweepRow& row);

std::string to_letter(const SweepTask& task);
SweepTask task_of_letter(std::string_view letter);

/// Starts tasks one at a time in processes of their own, and makes their rows.
class SweepRunner {
 public:
  /// `program`: the lockstep to start, as a Nursery's.
  explicit SweepRunner(int rank, std::string program = {})
      : nursery_(std::move(program)), rank_(rank) {}

  bool busy() const { return nursery_.busy(); }
  void start(SweepTask task);
  bool ready(std::chrono::microseconds wait) { return nursery_.ready(wait); }
  SweepRow finish();

 private:
  Nursery nursery_;
  SweepTask task_;
  int rank_;
};

}  // namespace lockstep
