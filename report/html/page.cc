#include "report/html/page.h"

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

constexpr std::string_view kHead = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<title>Lockstep report</title>
<link rel="icon" href="data:,">
<style>
)";

constexpr std::string_view kBody = R"(</style>
</head>
<body>
<noscript>This report needs JavaScript; nothing is loaded from a network.</noscript>
<script type="application/json" id="data">)";

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
  std::string page(kHead);
  for (const PagePart& part : page_parts()) {
    if (part.name.ends_with(".css")) {
      page += part.text;
    }
  }
  page += kBody;
  page += script_safe(page_data(documents));
  page += "</script>\n<script>\n";
  page += echarts_text();
  page += "\n</script>\n<script>\n";
  for (const PagePart& part : page_parts()) {
    if (part.name.ends_with(".js")) {
      page += part.text;
    }
  }
  return page + "Report.open(document);\n</script>\n</body>\n</html>\n";
}

}  // namespace lockstep
