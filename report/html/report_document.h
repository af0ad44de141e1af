#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace lockstep {

/// A result that a report shows: what a command prints with --json, and where it came from.
struct ReportDocument {
  std::string name;  ///< the file's, or the command's
  Json json;         ///< with a member `schema`
};

/// Reads one. ERRORS: Error with file, line and column where it is no JSON, and where its schema is
/// none that a report shows, or one of another version.
ReportDocument read_report_document(const std::string& path);
ReportDocument parse_report_document(std::string_view text, const std::string& file);

/// What of it a page needs, bounded: links folded into a fabric (report/html/fabric.h), layers of
/// one name into one where they are many, long lists of what is drawn a mark a row thinned to their
/// extremes (`thinned` holds how many there were), names cut at 200 characters. O(document).
Json for_page(const ReportDocument& document);

}  // namespace lockstep
