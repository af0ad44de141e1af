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

/// Before any work: whether they can be written at all.
/// ERRORS: Error for a missing part, a missing folder, an ending that is neither .svg nor .png.
void check_report_flags(const ReportFlags& flags);

/// The files that they ask for, each with its flag.
std::vector<std::pair<std::string, std::string>> files_of(const ReportFlags& flags);

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
