#pragma once

#include <string>
#include <string_view>

#include "base/warnings.h"
#include "workloads/workload.h"

namespace lockstep {

/// Where a line stands, for messages.
struct LinePlace {
  std::string_view file;
  std::size_t line = 1;
};

/// Reads the first line of SimAI's text: a policy, then "key: value" pairs in any order, each
/// optional. Fills job.parallel (gpus 0 where the line does not say) and table's header fields.
///
/// A word that is no key of ours is kept for writing, and warned of: SimAI passes over it too.
/// ERRORS: Error with file, line, column and field: unknown policy, a key twice, without a value or
/// with one out of range.
void parse_simai_header(std::string_view line, LinePlace place, WorkloadJob& job, LayerTable& table,
                        Warnings* warnings);

/// Appends the line, without its end: the fields of table.header in their order, then those that
/// are not among them and differ from what a reader assumes.
void append_simai_header(const WorkloadJob& job, const LayerTable& table, std::string& out);

}  // namespace lockstep
