#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "app/cli_fwd.h"

namespace lockstep {

struct ReportDocument;

/// --report and --figure, which every command has whose results can be looked at.
struct ReportFlags {
  std::string report;                ///< an HTML file to write; empty: none
  std::vector<std::string> figures;  ///< "heatmap.svg", "timeline=step.png"

  bool wanted() const { return !report.empty() || !figures.empty(); }
};

void define_report_flags(CLI::App& app, ReportFlags& flags);

/// Files to write, each behind its flag: ("--report", "r.html").
using OutputNames = std::vector<std::pair<std::string, std::string>>;

/// Before any work: whether they can be written at all. `on_standard_output`: what the command
/// prints there whatever the flags say; null: nothing.
/// ERRORS: Error for a missing part, a missing folder, an ending that is neither .svg nor .png, two
/// outputs that are one file or standard output.
void check_report_flags(const ReportFlags& flags,
                        const char* on_standard_output = "the command's own result");

/// The files that they ask for.
OutputNames files_of(const ReportFlags& flags);

/// ERRORS: Error where two are one file, as one of them would be lost, or standard output.
void check_names_differ(const OutputNames& files);
/// ERRORS: Error where one is standard output, which has `what` already.
void check_not_standard_output(const OutputNames& files, const char* what);

/// ERRORS: Error where the folder that the file is to lie in does not exist.
void check_output_folder(const std::string& path, const char* flag);

/// Writes what the flags ask for. ERRORS: a figure that there is no data for; those of AtomicFile.
void write_reports(const ReportFlags& flags, const std::vector<ReportDocument>& documents);
/// Of one result: the JSON document that the command prints, as text.
void write_reports(const ReportFlags& flags, const std::string& command, const std::string& json);

/// Words as a shell reads them.
std::string shell_text(std::span<const std::string> words);

/// This run's command line, quoted for a shell, the program as "lockstep": without what changes no
/// result, which is where outputs go (but for whatif and sweep, which work in a folder), how many
/// threads work and what a search goes on from.
std::string command_line();
/// The document with a member `command` behind its `schema`: how to make it again.
std::string with_command(std::string json);

}  // namespace lockstep
