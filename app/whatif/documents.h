#pragma once

#include <string>
#include <vector>

#include "analysis/whatif/job_analysis.h"
#include "app/warnings_out.h"

namespace lockstep {

/// Warns where the meta file tells other sizes than the trace has.
void compare_with_meta(const whatif::OpTable& table, const JobMeta& meta,
                       const std::string& meta_file, Warnings& warnings);

/// Writes the figures, heat maps and causes into the folder (made if absent): result-NAME.json,
/// ms-, mw-, causes-, heatmap-, heatmap-exact-. Each is replaced as a whole.
void write_documents(const whatif::JobAnalysis& job, const std::string& folder);
/// The names of those files.
std::vector<std::string> document_names(const std::string& trial_name);
/// Writes timeline-NAME.json.gz and ideal-timeline-NAME.json.gz, or (if `perfetto`) both as
/// NAME.pftrace.gz in Perfetto's own format. PRECONDITION: the job's rows were kept.
void write_timelines(const whatif::JobAnalysis& job, const std::string& folder, bool perfetto);

}  // namespace lockstep
