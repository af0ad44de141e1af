#include "report/html/page.h"

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep {
namespace {

/// A JSON text that can stand within a script element: no '<' of it can end the element.
std::string script_safe(const Json& json) {
  const std::string text = to_line(json);
  std::string safe;
  safe.reserve(text.size() + text.size() / 64);
  for (const char c : text) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

/// `connect`: what the page may ask over a network; `open`: the script that fills it.
struct PageKind {
  std::string_view title, connect, no_script, open;
};
constexpr PageKind kReport{"Lockstep report", "'none'",
                           "This report needs JavaScript; nothing is loaded from a network.",
                           "Report.open();"};
constexpr PageKind kLive{"Lockstep, live", "'self'", "This page needs JavaScript.",
                         "Report.live();"};

std::string page_of(const PageKind& kind, const Json& data) {
  std::string page = fmt::format(
      R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; connect-src {}">
<title>{}</title>
<link rel="icon" href="data:,">
<style>
)",
      kind.connect, kind.title);
  for (const PagePart& part : page_parts()) {
    if (part.name.ends_with(".css")) {
      page += part.text;
    }
  }
  page += fmt::format(
      "</style>\n</head>\n<body>\n<noscript>{}</noscript>\n"
      "<script type=\"application/json\" id=\"data\">{}</script>\n",
      kind.no_script, script_safe(data));
  if (!echarts_text().empty()) {
    page += fmt::format("<script>\n{}\n</script>\n", echarts_text());
  }
  page += "<script>\n";
  for (const PagePart& part : page_parts()) {
    if (part.name.ends_with(".js")) {
      page += part.text;
    }
  }
  return page + fmt::format("{}\n</script>\n</body>\n</html>\n", kind.open);
}

}  // namespace

Json page_data(const std::vector<ReportDocument>& documents) {
  Json list = Json::array();
  for (const ReportDocument& document : documents) {
    list.push_back(for_page(document));
  }
  return {{"schema", "lockstep-report/1"}, {"documents", std::move(list)}};
}

std::string html_page(const std::vector<ReportDocument>& documents) {
  if (echarts_text().empty()) {
    throw Error("this build has no charting library, so that it makes no reports",
                ExitCode::kMissingPart)
        .hint("./setup installs it; then configure and build again");
  }
  return page_of(kReport, page_data(documents));
}

std::string html_live_page() { return page_of(kLive, page_data({})); }

}  // namespace lockstep
