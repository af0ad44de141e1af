#include "report/html/report_document.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
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

constexpr std::array<std::string_view, 13> kSchemas = {  // each in kVersion
    "lockstep-simulate",
    "lockstep-causes",
    "lockstep-compare",
    "lockstep-compare-steps",
    "lockstep-compare-training",
    "lockstep-score",
    "lockstep-collective",
    "lockstep-plan",
    "lockstep-job-plan",
    "lockstep-mixed-plan",
    "lockstep-plan-price",
    "lockstep-goodput",
    "lockstep-sweep"};

constexpr std::size_t kLongestText = 200;      // characters of a name
constexpr std::size_t kLongestCommand = 8000;  // and of a command, which is of use in one piece
constexpr std::size_t kMostItems = 20000;      // of a list that is thinned
constexpr std::string_view kVersion = "/1";

/// Lists that are drawn a mark a row. All others are added up, ranked or pointed into by numbers
/// (those of `detail`), which a part of them would make wrong.
constexpr std::array<std::string_view, 6> kRows = {"workers", "steps", "rows",
                                                   "points",  "plans", "front"};

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

double number_in(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() && found->is_number() ? found->get<double>()
                                                                           : 0;
}

double slowdown_of(const Json& item) { return number_in(item, "slowdown"); }

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

/// How many objects stand in the lists of a name, and whether some were left out.
struct Rows {
  std::size_t count = 0;
  bool thinned = false;
};

/// Names become short, and lists of kRows that are too long are thinned; `rows` tells of how many
/// objects, by the lists' names.
void bound(Json& json, const std::string& list, std::map<std::string, Rows>& rows) {
  if (json.is_string()) {
    cut(json.get_ref<std::string&>());
  } else if (json.is_array()) {
    if (!json.empty() && json.front().is_object() &&
        std::ranges::find(kRows, list) != kRows.end()) {
      Rows& known = rows[list];
      known.count += json.size();
      if (json.size() > kMostItems) {
        known.thinned = true;
        thin_list(json);
      }
    }
    for (Json& element : json) {
      bound(element, "", rows);
    }
  } else if (json.is_object()) {
    Json short_keys = Json::object();
    bool changed = false;
    for (auto& [key, value] : json.items()) {
      if (key == "command" && value.is_string()) {
        cut(value.get_ref<std::string&>(), kLongestCommand);
      } else {
        bound(value, key, rows);
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

/// A list of layers that is too long, as AICB's are, with those of one name as one that counts
/// them: their times are added up, of communication what is hidden and what is not.
Json layers_by_name(const Json& layers) {
  constexpr std::array<const char*, 3> kPhases = {"forward", "input_grad", "weight_grad"};
  Json sums = Json::array();
  std::map<std::string, std::size_t> place;
  for (const Json& layer : layers) {
    if (!layer.is_object() || !layer.contains("name") || !layer["name"].is_string()) {
      continue;  // none that could be shown
    }
    const auto [known, is_new] = place.try_emplace(layer["name"].get<std::string>(), sums.size());
    if (is_new) {
      sums.push_back({{"name", known->first}, {"count", 0}});
    }
    Json& sum = sums[known->second];
    sum["count"] = sum["count"].get<std::int64_t>() + 1;
    for (const char* name : kPhases) {
      const Json phase = layer.contains(name) ? layer[name] : Json();
      const double exposed = number_in(phase, "exposed_s");
      const double comm = std::max(number_in(phase, "comm_s"), exposed);
      Json& total = sum[name];
      total = {{"compute_s", number_in(total, "compute_s") + number_in(phase, "compute_s")},
               {"comm_s", number_in(total, "comm_s") + comm},
               {"exposed_s", number_in(total, "exposed_s") + exposed}};
    }
  }
  return sums;
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

/// The schema's name; behind it stands its version.
std::string_view name_of(std::string_view schema) { return schema.substr(0, schema.find('/')); }

}  // namespace

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
  const auto& found = schema->get_ref<const std::string&>();
  const std::string_view name = name_of(found);
  if (std::ranges::find(kSchemas, name) == kSchemas.end()) {
    throw Error(fmt::format("'{}' is no schema that a report shows", printable(found)))
        .at(path)
        .field("schema")
        .expected(fmt::format("{}", fmt::join(kSchemas, ", ")));
  }
  if (found.substr(name.size()) != kVersion) {
    throw Error(fmt::format("'{}' was made by another version of lockstep", printable(found)))
        .at(path)
        .field("schema")
        .expected(fmt::format("{}{}, which this one reads", name, kVersion));
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
  if (json.contains("layers") && json["layers"].is_array() && json["layers"].size() > kMostItems) {
    json["layers"] = layers_by_name(json["layers"]);
  }
  std::map<std::string, Rows> rows;
  bound(json, "", rows);
  Json thinned = Json::object();
  for (const auto& [list, known] : rows) {
    if (known.thinned) {
      thinned[list] = known.count;
    }
  }
  if (!thinned.empty()) {
    json["thinned"] = std::move(thinned);
  }
  return json;
}

}  // namespace lockstep
