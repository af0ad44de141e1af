#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trace/physical_log.h"

namespace lockstep {

/// The lines of one of several runs whose output a launcher put into each other.
struct TaggedRun {
  std::string tag;   ///< "node3:"
  std::string text;  ///< with as many lines as the file; those of other runs are empty
};

/// Takes apart the output of programs of nccl-tests that did not know of each other (pdsh, clush,
/// mpirun of programs without MPI): where more than one tag begins a run, and one goes on after the
/// next has begun. Lines of others, a shell's say, are in all. Empty where there is no such thing.
/// O(text x runs).
std::vector<TaggedRun> runs_by_tag(std::string_view text);

/// Adds the tables of a run's log to those of all, by ids with the run's tag behind them.
void append_tables(PhysicalLog&& run, std::string_view tag, PhysicalLog& log, TextTable& names);

}  // namespace lockstep
