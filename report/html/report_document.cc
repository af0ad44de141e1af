#include "report/html/report_document.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

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

double slowdown_of(const Json& item) {
  const auto found = item.is_object() ? item.find("slowdown") : item.end();
  return item.is_object() && found != item.end() && found->is_number() ? found->get<double>() : 0;
}

/// Of a list that is too long kMostItems, in its order: the kSlowest with the largest `slowdown`,
/// where they have one, as to find these is what it is for; the others evenly spread.
void thin_list(Json& list) {
  constexpr std::size_t kSlowest = 256;
  std::vector<std::size_t> order(list.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(),
                           [&](std::size_t i) { return slowdown_of(list[i]); });
  const std::size_t slowest = slowdown_of(list[order.front()]) > 0 ? kSlowest : 0;
  std::vector<std::size_t> chosen(order.begin(),
                                  order.begin() + static_cast<std::ptrdiff_t>(slowest));
  std::sort(order.begin() + static_cast<std::ptrdiff_t>(slowest), order.end());
  const std::size_t others = order.size() - slowest, room = kMostItems - slowest;
  for (std::size_t i = 0; i < room; ++i) {
    chosen.push_back(order[slowest + i * others / room]);
  }
  std::ranges::sort(chosen);
  Json kept = Json::array();
  for (const std::size_t i : chosen) {
    kept.push_back(std::move(list[i]));
  }
  list = std::move(kept);
}

/// Names become short, and lists of objects that are too long are thinned; `thinned` tells of how
/// many items, by the lists' names.
void bound(Json& json, const std::string& list, Json& thinned) {
  if (json.is_string()) {
    cut(json.get_ref<std::string&>());
  } else if (json.is_array()) {
    if (json.size() > kMostItems && json.front().is_structured()) {
      thinned[list] = json.size();
      thin_list(json);
    }
    for (Json& element : json) {
      bound(element, list, thinned);
    }
  } else if (json.is_object()) {
    Json short_keys = Json::object();
    bool changed = false;
    for (auto& [key, value] : json.items()) {
      if (key == "command" && value.is_string()) {
        cut(value.get_ref<std::string&>(), kLongestCommand);
      } else {
        bound(value, key, thinned);
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
  Json thinned = Json::object();
  bound(json, "", thinned);
  if (!thinned.empty()) {
    json["thinned"] = std::move(thinned);
  }
  return json;
}

}  // namespace lockstep
