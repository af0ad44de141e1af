#include "report/html/figure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "report/html/page.h"
#include "report/html/script_engine.h"

namespace lockstep {
namespace {

/// The page's scripts with the documents, without a page.
ScriptEngine engine_for(const std::vector<ReportDocument>& documents) {
  if (echarts_text().empty()) {
    throw Error("this build has no charting library, so that it draws no figures",
                ExitCode::kMissingPart)
        .hint("./setup installs it; then configure and build again");
  }
  ScriptEngine engine;
  engine.run("prelude",
             "var self = this; function setTimeout() { return 0; } "
             "function clearTimeout() {}");
  engine.run("echarts.min.js", echarts_text());
  for (const PagePart& part : page_parts()) {
    if (part.name.ends_with(".js")) {
      engine.run(part.name, part.text);
    }
  }
  engine.call("Report_load", to_line(page_data(documents)));
  return engine;
}

std::vector<FigureName> names(ScriptEngine& engine) {
  std::vector<FigureName> found;
  for (const Json& figure : parse_json(engine.call("Report_figures", ""), "figures")) {
    found.push_back({figure["name"].get<std::string>(), figure["title"].get<std::string>()});
  }
  return found;
}

}  // namespace

std::vector<FigureName> figures_of(const std::vector<ReportDocument>& documents) {
  ScriptEngine engine = engine_for(documents);
  return names(engine);
}

std::string figure_svg(const std::vector<ReportDocument>& documents, const std::string& name) {
  ScriptEngine engine = engine_for(documents);
  std::vector<std::string_view> known;
  const std::vector<FigureName> all = names(engine);
  for (const FigureName& figure : all) {
    known.push_back(figure.name);
    if (figure.name == name) {
      return engine.call("Report_svg", name);
    }
  }
  const std::string_view near = closest(name, known);
  Error error = Error(fmt::format("there is no data for a figure '{}'", printable(name)))
                    .expected(known.empty() ? "results that a figure can be drawn of"
                                            : fmt::format("one of {}", fmt::join(known, ", ")));
  if (near.empty()) {
    throw error;
  }
  throw std::move(error).hint(fmt::format("did you mean '{}'?", near));
}

}  // namespace lockstep
