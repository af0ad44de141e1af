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

constexpr std::array<std::string_view, 10> kSchemas = {
    "lockstep-simulate",   "lockstep-causes",     "lockstep-compare", "lockstep-compare-steps",
    "lockstep-score",      "lockstep-collective", "lockstep-plan",    "lockstep-job-plan",
    "lockstep-plan-price", "lockstep-goodput"};

constexpr std::size_t kLongestText = 200;  // characters of a name
constexpr std::size_t kMostItems = 20000;  // of a list of objects

/// Cut at the boundary of a UTF-8 character.
void cut(std::string& text) {
  if (text.size() <= kLongestText) {
    return;
  }
  std::size_t end = kLongestText;
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
      bound(value);
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
  bound(json);
  return json;
}

}  // namespace lockstep
