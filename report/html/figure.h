#pragma once

#include <string>
#include <vector>

#include "report/html/report_document.h"

namespace lockstep {

/// A figure of the page, drawn by the same scripts as there.
struct FigureName {
  std::string name;   ///< "heatmap"
  std::string title;  ///< "How slow each worker makes the job"
};

/// Those that there is data for, in the page's order.
/// ERRORS: those of figure_svg().
std::vector<FigureName> figures_of(const std::vector<ReportDocument>& documents);

/// One of them as SVG, 960 pixels wide, for paper: on white. The same bytes for the same documents.
/// ERRORS: Error where there is no data for a figure of this name (it lists those there are), and
/// Error (a missing part) where ECharts was not built in.
std::string figure_svg(const std::vector<ReportDocument>& documents, const std::string& name);

}  // namespace lockstep
