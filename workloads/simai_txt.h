#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/warnings.h"
#include "workloads/workload.h"

namespace lockstep {

/// Reads SimAI's workload text, as AICB writes it, into one job with a LayerTable
/// (docs/formats/workload.md).
///
/// Tolerant where SimAI is: columns are split at any blanks, lines may end in CR LF, the last one
/// without; header keys are optional and in any order; unknown words there are kept, with a
/// warning. Unlike SimAI it does not take an unknown communication type for none.
///
/// O(size of text); one pass, no allocation a line; memory sizeof(Layer) a line. `file` names the
/// text in messages, and its stem the job.
/// ERRORS: Error with file, line, column, field and what was expected.
Workload read_simai_txt(std::string_view text, const std::string& file,
                        Warnings* warnings = nullptr);

/// Takes the next piece of a text.
using TextSink = std::function<void(std::string_view)>;

/// Writes the text as AICB does, in pieces of about 1 MiB: what AICB wrote is written back byte by
/// byte.
///
/// ERRORS: Error when the text cannot express the workload: several jobs, an OpTable, a group other
/// than the column's plain one, EP and DP_EP, a time that is not in whole nanoseconds, a name with
/// blanks.
void write_simai_txt(const Workload& workload, const TextSink& sink);
std::string to_simai_txt(const Workload& workload);

}  // namespace lockstep
