#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/html/report_document.h"

namespace lockstep {

/// A text that is compiled into the program: a script of the page, or its style.
struct PagePart {
  std::string_view name, text;
};
/// Our own parts, by name.
std::span<const PagePart> page_parts();

/// Apache ECharts' minified build; empty where this program was built without it.
std::string_view echarts_text();

/// One HTML page that shows results: sections appear where the data for them is there. It holds all
/// that it needs and asks no network; its policy forbids it. The documents are data of the page and
/// never markup, whatever names they hold.
/// ERRORS: Error (a missing part) where ECharts was not built in.
std::string html_page(const std::vector<ReportDocument>& documents);

/// The same page, empty, with sliders: it asks the server that it comes from for a step
/// (docs/formats/serve-api.md) and shows what it answers. Without ECharts it shows tables.
std::string html_live_page();

/// The documents as the page's scripts take them.
Json page_data(const std::vector<ReportDocument>& documents);

}  // namespace lockstep
