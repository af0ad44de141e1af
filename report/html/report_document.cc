#include "report/html/report_document.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "report/html/fabric.h"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 12> kSchemas = {
    "lockstep-simulate",   "lockstep-causes",     "lockstep-compare", "lockstep-compare-steps",
    "lockstep-score",      "lockstep-collective", "lockstep-plan",    "lockstep-job-plan",
    "lockstep-mixed-plan", "lockstep-plan-price", "lockstep-goodput", "lockstep-sweep"};

constexpr std::size_t kLongestText = 200;      // characters of a name
constexpr std::size_t kLongestCommand = 8000;  // and of a command, which is of use in one piece
constexpr std::size_t kMostItems = 20000;      // of a list of objects

/// Cut at the boundary of a UTF-8 character.
void cut(std::string& text, std::size_t longest = kLongestText) {
  if (text.size() <= longest) {
    return;
  }
  std::size_t end = longest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    --end;
  }
  text.resize(end);
  text += "…";
}

/// Names become short; lists of objects that are too long keep evenly spread items.
void bound(Json& json) {
  if (json.is_string()) {
    cut(json.get_ref<std::string&>());
  } else if (json.is_array()) {
    if (json.size() > kMostItems && json.front().is_structured()) {
      Json kept = Json::array();
      for (std::size_t i = 0; i < kMostItems; ++i) {
        kept.push_back(std::move(json[i * json.size() / kMostItems]));
      }
      json = std::move(kept);
    }
    for (Json& element : json) {
      bound(element);
    }
  } else if (json.is_object()) {
    Json short_keys = Json::object();
    bool changed = false;
    for (auto& [key, value] : json.items()) {
      if (key == "command" && value.is_string()) {
        cut(value.get_ref<std::string&>(), kLongestCommand);
      } else {
        bound(value);
      }
      changed = changed || key.size() > kLongestText;
    }
    if (changed) {
      for (auto& [key, value] : json.items()) {
        std::string name = key;
        cut(name);
        short_keys[name] = std::move(value);
      }
      json = std::move(short_keys);
    }
  }
}

/// Of a table in columns, at most kMostRows rows, evenly spread.
Json thin_columns(const Json& columns) {
  constexpr std::size_t kMostRows = 5000;
  Json thin = Json::array();
  for (const Json& column : columns) {
    if (!column.is_object() || !column.contains("cells") || !column["cells"].is_array()) {
      continue;  // none that could be shown
    }
    const Json& cells = column["cells"];
    Json kept = Json::array();
    const std::size_t rows = std::min(kMostRows, cells.size());
    for (std::size_t i = 0; i < rows; ++i) {
      kept.push_back(cells[i * cells.size() / rows]);
    }
    thin.push_back({{"name", column.contains("name") && column["name"].is_string() ? column["name"]
                                                                                   : Json("")},
                    {"cells", kept}});
  }
  return thin;
}

std::string_view without_version(std::string_view schema) {
  return schema.substr(0, schema.find('/'));
}

}  // namespace

bool is_shown_by_report(std::string_view schema) {
  return std::ranges::find(kSchemas, without_version(schema)) != kSchemas.end();
}

ReportDocument read_report_document(const std::string& path) {
  const FileText text(path);
  return parse_report_document(text.view(), path);
}

ReportDocument parse_report_document(std::string_view text, const std::string& path) {
  ReportDocument document{path, parse_json(text, path)};
  const auto schema =
      document.json.is_object() ? document.json.find("schema") : document.json.end();
  if (schema == document.json.end() || !schema->is_string()) {
    throw Error("is no result of a command: it has no schema")
        .at(path)
        .expected("what a command prints with --json")
        .hint("lockstep simulate … --json > result.json");
  }
  if (!is_shown_by_report(schema->get_ref<const std::string&>())) {
    throw Error(fmt::format("'{}' is no schema that a report shows",
                            printable(schema->get_ref<const std::string&>())))
        .at(path)
        .field("schema")
        .expected(fmt::format("{}", fmt::join(kSchemas, ", ")));
  }
  return document;
}

Json for_page(const ReportDocument& document) {
  Json json = document.json;
  json["file"] = document.name;
  const auto links = json.find("links");
  if (links != json.end() && links->is_array() && !links->empty()) {
    json["fabric"] = fabric_of_links(*links);
    json.erase("links");
  }
  if (json.contains("columns") && json["columns"].is_array()) {
    json["columns"] = thin_columns(json["columns"]);
  }
  bound(json);
  return json;
}

}  // namespace lockstep
