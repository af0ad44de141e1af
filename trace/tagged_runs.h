#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/physical_log.h"

namespace lockstep {

/// The lines of one of several runs whose output a launcher put into each other.
struct TaggedRun {
  std::string tag;  ///< "node3:"
  std::string text;
  std::vector<std::int64_t> lines;  ///< where each line of the text stands in the file
};

/// Takes apart the output of programs of nccl-tests that did not know of each other (pdsh, clush,
/// mpirun of programs without MPI): where more than one tag begins a run, and one goes on after the
/// next has begun. What stands right before the first of them, a shell's exports say, is in all.
/// Empty where there is no such thing. O(text log(runs) + 16 KiB x runs).
std::vector<TaggedRun> runs_by_tag(std::string_view text);

/// Adds the tables that were read of a run to those of all, by ids with the run's tag behind them.
void append_tables(PhysicalLog&& part, const TaggedRun& run, PhysicalLog& log, TextTable& names);

}  // namespace lockstep
