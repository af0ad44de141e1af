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

/// A name as the zoo writes it: "meta-llama/Llama_3.1 8B" becomes "llama-3.1-8b".
std::string plain_name(std::string_view name) {
  std::string plain = to_lower(name.substr(name.rfind('/') + 1));
  for (char& c : plain) {
    c = c == '_' || c == ' ' ? '-' : c;
  }
  return plain;
}

Error unknown_model(std::string_view name, const std::vector<std::string_view>& known) {
  Error error = Error(fmt::format("unknown model '{}'", printable(name)))
                    .expected("a name that 'lockstep generate --list-models' shows");
  if (name.ends_with(".yaml") || name.ends_with(".yml") || name.ends_with(".json")) {
    return std::move(error).hint(
        "--model-file F reads a model file, --hf-config F a Hugging Face config.json");
  }
  const std::string plain = plain_name(name);
  constexpr std::size_t kMost = 6;
  std::vector<std::string_view> near;
  for (const std::string_view each : known) {
    if (plain.size() > 2 && each.starts_with(plain) && near.size() < kMost) {
      near.push_back(each);
    }
  }
  if (near.empty() && !closest(plain, known).empty()) {
    near.push_back(closest(plain, known));
  }
  return near.empty() ? error
                      : std::move(error).hint(fmt::format("did you mean {}?", join(near, ", ")));
}

}  // namespace

bool has_model(std::string_view name) {
  const std::string wanted = to_lower(name);
  return std::ranges::any_of(list_models(),
                             [&](const ZooEntry& entry) { return is_called(entry, wanted); }) ||
         std::ranges::count(list_architectures(), std::string_view(wanted)) > 0;
}

std::string known_model_hint(std::string_view path) {
  const std::string wanted = plain_name(path);
  for (const ZooEntry& entry : list_models()) {
    if (is_called(entry, wanted)) {
      return fmt::format("--model {} is built in", entry.name);
    }
  }
  return "check the path; relative paths start at the working directory";
}

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
  throw unknown_model(name, known);
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
