#include "app/sweep/row.h"

#include <algorithm>
#include <zlib.h>

#include <fmt/format.h>

#include "base/json_number.h"
#include "base/text.h"

namespace lockstep {
namespace {

using Scalars = std::vector<std::pair<std::string, Json>>;

bool is_timing(const std::string& key) { return key.ends_with("cpu_s") || key.ends_with("wall_s"); }

void walk(const Json& value, const std::string& key, Scalars& found) {
  if (value.is_object()) {
    for (const auto& [name, member] : value.items()) {
      walk(member, key.empty() ? name : key + "." + name, found);
    }
  } else if (value.is_array() && value.size() == 1 && value.front().is_object()) {
    walk(value.front(), key + ".0", found);
  } else if (!value.is_array() && !value.is_binary() && !value.is_null() && !is_timing(key) &&
             key != "command") {
    found.emplace_back(key, value);
  }
}

/// The value at a dotted key; null where there is none.
Json at_key(const Json& document, const std::string& key) {
  const Json* value = &document;
  for (const std::string_view part : split(key, '.')) {
    const auto index = to_int(part);
    if (value->is_object() && value->contains(std::string(part))) {
      value = &(*value)[std::string(part)];
    } else if (value->is_array() && index && *index >= 0 &&
               static_cast<std::size_t>(*index) < value->size()) {
      value = &(*value)[static_cast<std::size_t>(*index)];
    } else {
      return nullptr;
    }
  }
  return *value;
}

std::string sum_of(std::string_view text) {
  return fmt::format("{:08x}", ::crc32(0, reinterpret_cast<const Bytef*>(text.data()),
                                       static_cast<uInt>(text.size())));
}

constexpr std::string_view kSum = R"(,"sum":")";

}  // namespace

Scalars scalars_of(const Json& document, const std::vector<std::string>& wanted) {
  Scalars found;
  if (wanted.empty()) {
    walk(document, "", found);
  }
  for (const std::string& key : wanted) {
    const Json value = at_key(document, key);
    if (value.is_object() || value.is_array()) {
      found.emplace_back(key, value.dump());
    } else if (!value.is_null()) {
      found.emplace_back(key, value);
    }
  }
  return found;
}

SweepRow make_row(std::int64_t point, const IsolatedResult& result,
                  const std::vector<std::string>& wanted) {
  SweepRow row{.point = point,
               .ending = result.ending,
               .exit_code = result.exit_code,
               .reason = result.reason,
               .outputs = {},
               .wall_s = result.wall_s,
               .cpu_s = result.cpu_s,
               .peak_bytes = result.peak_bytes};
  if (row.ending != Ending::kDone && row.ending != Ending::kCheckFailed) {
    return row;
  }
  const Json document = Json::parse(result.out, nullptr, false);
  if (document.is_discarded()) {
    row.ending = Ending::kBug;
    row.reason = "the command did not print JSON";
    return row;
  }
  row.outputs = scalars_of(document, wanted);
  return row;
}

std::string to_line(const SweepRow& row) {
  Json json{{"point", row.point}, {"ending", to_text(row.ending)}, {"exit_code", row.exit_code}};
  if (!row.reason.empty()) {
    json["reason"] = row.reason;
  }
  Json outputs = Json::object();
  for (const auto& [key, value] : row.outputs) {
    outputs[key] = value;
  }
  json["outputs"] = std::move(outputs);
  json["wall_s"] = row.wall_s;
  json["cpu_s"] = row.cpu_s;
  json["peak_bytes"] = row.peak_bytes;
  json["rank"] = row.rank;
  if (row.kept) {
    json["kept"] = *row.kept;
  }
  std::string line = to_line(json);
  line.pop_back();
  return line + std::string(kSum) + sum_of(line) + "\"}";
}

std::optional<SweepRow> row_of_line(std::string_view line) {
  const std::size_t at = line.rfind(kSum);
  if (at == std::string_view::npos ||
      line.substr(at) != std::string(kSum) + sum_of(line.substr(0, at)) + "\"}") {
    return std::nullopt;
  }
  const Json json = Json::parse(line, nullptr, false);
  try {
    SweepRow row;
    row.point = whole_number(json.at("point"));
    row.ending = ending_named(json.at("ending").get<std::string>());
    row.exit_code = static_cast<int>(whole_number(json.at("exit_code")));
    row.reason = json.value("reason", "");
    for (const auto& [key, value] : json.at("outputs").items()) {
      row.outputs.emplace_back(key, value);
    }
    row.wall_s = json.at("wall_s").get<double>();
    row.cpu_s = json.at("cpu_s").get<double>();
    row.peak_bytes = whole_number(json.at("peak_bytes"));
    row.rank = static_cast<int>(whole_number(json.at("rank")));
    if (json.contains("kept")) {
      row.kept = json.at("kept").get<std::vector<std::string>>();
    }
    return row;
  } catch (const Json::exception&) {
    return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace lockstep
