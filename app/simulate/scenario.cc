#include "app/simulate/scenario.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/yaml_problem.h"
#include "generator/model/yaml_fields.h"

namespace lockstep {
namespace {

Straggler of_mapping(const YAML::Node& node, const std::string& file) {
  const YamlFields fields(node, file, "stragglers");
  const StragglerModel& model = straggler_model_named(fields.text("model"));
  std::vector<std::string_view> known{"model", "from", "until"};
  std::vector<Straggler::Value> values;
  for (const StragglerField& field : model.fields) {
    known.push_back(field.name);
    if (fields.has(field.name)) {
      values.push_back({std::string(field.name), fields.text(field.name)});
    }
  }
  fields.allow(known);
  const auto date = [&](std::string_view key) {
    return fields.has(key) ? fields.text(key) : std::string();
  };
  return Straggler::make(model, values, date("from"), date("until"));
}

/// A list of the file; nothing where it has none of that name.
YAML::Node list_of(const YamlFields& fields, const char* name, const std::string& file) {
  if (!fields.has(name)) {
    return YAML::Node(YAML::NodeType::Sequence);
  }
  const YAML::Node list = fields.at(name);
  if (!list.IsSequence()) {
    throw yaml_error("is no list", list, file, name);
  }
  return list;
}

}  // namespace

Scenario parse_scenario(std::string_view text, const std::string& file) {
  const YAML::Node root = load_yaml(text, file);
  constexpr std::array<std::string_view, 2> kKnown{"stragglers", "beside"};
  const YamlFields fields(root, file, "");
  fields.allow(kKnown);
  if (!fields.has("stragglers") && !fields.has("beside")) {
    throw fields.error("there are neither stragglers nor jobs beside");
  }
  Scenario scenario;
  for (const YAML::Node& item : list_of(fields, "stragglers", file)) {
    const std::size_t line = static_cast<std::size_t>(item.Mark().line) + 1;
    try {
      scenario.stragglers.push_back(item.IsScalar() ? Straggler::parse(item.Scalar())
                                                    : of_mapping(item, file));
    } catch (Error& error) {
      throw std::move(error).at(file, line);
    }
    scenario.stragglers.back().set_source(file, line);
  }
  for (const YAML::Node& item : list_of(fields, "beside", file)) {
    if (!item.IsScalar() || item.Scalar().empty()) {
      throw yaml_error("is no name of a workload's file", item, file, "beside");
    }
    scenario.beside.push_back(item.Scalar());
  }
  return scenario;
}

}  // namespace lockstep
