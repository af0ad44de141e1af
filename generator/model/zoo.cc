#include "generator/model/zoo.h"

#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "generator/model/built_in_files.h"
#include "generator/model/model_file.h"

namespace lockstep {
namespace {

const std::string kZooFile = "zoo.json";

std::string_view zoo_text() {
  for (const BuiltInFile& file : built_in_files()) {
    if (file.name == kZooFile) {
      return file.text;
    }
  }
  LOCKSTEP_CHECK(false, "the zoo is built in");
  return {};
}

ZooEntry read_entry(const JsonView& json) {
  ZooEntry entry;
  entry.name = json["name"].string();
  entry.architecture = json["architecture"].string();
  for (const auto& [name, value] : json["variables"].json().items()) {
    entry.variables[name] = json["variables"][name].number();
  }
  if (json.has("aliases")) {
    for (std::size_t i = 0; i < json["aliases"].size(); ++i) {
      entry.aliases.push_back(json["aliases"][i].string());
    }
  }
  entry.published_parameters = json["published_parameters"].number();
  if (json.has("published_active_parameters")) {
    entry.published_active_parameters = json["published_active_parameters"].number();
  }
  entry.source = json["source"].string();
  if (json.has("unconfirmed")) {
    entry.unconfirmed = json["unconfirmed"].string();
  }
  return entry;
}

bool is_called(const ZooEntry& entry, const std::string& name) {
  bool called = entry.name == name;
  for (const std::string& alias : entry.aliases) {
    called = called || alias == name;
  }
  return called;
}

}  // namespace

std::vector<ZooEntry> list_models() {
  const Json json = parse_json(zoo_text(), kZooFile);
  const JsonView view(json, kZooFile);
  std::vector<ZooEntry> entries;
  for (std::size_t i = 0; i < view.size(); ++i) {
    entries.push_back(read_entry(view[i]));
  }
  return entries;
}

Model find_model(std::string_view name, const Variables& given) {
  const std::string wanted = to_lower(name);
  const std::vector<ZooEntry> entries = list_models();
  std::vector<std::string_view> known;
  for (const ZooEntry& entry : entries) {
    known.push_back(entry.name);
    known.insert(known.end(), entry.aliases.begin(), entry.aliases.end());
    if (!is_called(entry, wanted)) {
      continue;
    }
    Variables variables = entry.variables;
    for (const auto& [variable, value] : given) {
      variables[variable] = value;
    }
    Model model =
        parse_model(architecture_text(entry.architecture), entry.architecture + ".yaml", variables);
    model.name = wanted;
    model.source = entry.source;
    model.published_parameters = given.empty() ? entry.published_parameters : 0;
    return model;
  }
  for (const std::string_view architecture : list_architectures()) {
    known.push_back(architecture);
    if (architecture == wanted) {
      return parse_model(architecture_text(architecture), wanted + ".yaml", given);
    }
  }
  Error error =
      Error(fmt::format("unknown model '{}'", printable(name))).expected(join(known, ", "));
  const std::string_view near = closest(wanted, known);
  throw near.empty() ? error : std::move(error).hint(fmt::format("did you mean {}?", near));
}

std::vector<std::string_view> list_architectures() {
  std::vector<std::string_view> names;
  for (const BuiltInFile& file : built_in_files()) {
    if (file.name.ends_with(".yaml")) {
      names.push_back(file.name.substr(0, file.name.size() - 5));
    }
  }
  return names;
}

std::string_view architecture_text(std::string_view name) {
  for (const BuiltInFile& file : built_in_files()) {
    if (file.name == std::string(name) + ".yaml") {
      return file.text;
    }
  }
  throw Error(fmt::format("unknown architecture '{}'", printable(name)))
      .expected(join(list_architectures(), ", "));
}

}  // namespace lockstep
