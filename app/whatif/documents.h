#pragma once

#include <string>

#include "analysis/whatif/job_analysis.h"

namespace lockstep {

/// Warns where the meta file tells other sizes than the trace has.
void compare_with_meta(const whatif::OpTable& table, const JobMeta& meta,
                       const std::string& meta_file, Warnings& warnings);

/// Writes the figures, heat maps and causes into the folder (made if absent): result-NAME.json,
/// ms-, mw-, causes-, heatmap-, heatmap-exact-. Each is replaced as a whole.
void write_documents(const whatif::JobAnalysis& job, const std::string& folder);
/// Writes timeline-NAME.json.gz and ideal-timeline-NAME.json.gz.
void write_timelines(const whatif::JobAnalysis& job, const std::string& folder);

/// Each warning on a line of standard error, with how often it came.
void print_warnings(const Warnings& warnings);

}  // namespace lockstep
