#include "generator/model/hf_config.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "generator/model/hf_layer_types.h"
#include "generator/model/hf_types.h"
#include "generator/model/model_file.h"
#include "generator/model/zoo.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMaxText = std::int64_t{16} << 20;
const HfType& type_of(const JsonView& config, const std::vector<HfType>& types) {
  const std::string& name = config["model_type"].string();
  const auto found = std::ranges::find(types, name, &HfType::name);
  if (found == types.end()) {
    const std::vector<HfForeign> foreign = hf_foreign_types();
    if (const auto other = std::ranges::find(foreign, name, &HfForeign::name);
        other != foreign.end()) {
      throw config["model_type"]
          .error(fmt::format("model_type '{}' has {}, which no built-in architecture has", name,
                             other->layers))
          .hint(
              "a model file can give their parameters, flops and bytes (kind: custom): "
              "docs/formats/model.md");
    }
    const std::vector<std::string_view> known = hf_model_types();
    Error error = config["model_type"]
                      .error(fmt::format("unknown model_type '{}'", printable(name)))
                      .expected(join(known, ", "));
    const std::string_view near = closest(name, known);
    const std::string_view other = "a model file says what it is made of: docs/formats/model.md";
    throw std::move(error).hint(
        config.has("text_config")
            ? "its language model stands under text_config: put that part into a file of its own"
        : near.empty() ? std::string(other)
                       : fmt::format("did you mean {}? Otherwise {}", near, other));
  }
  return *found;
}

/// Hugging Face's defaults, where the architecture has such variables: as many key and value heads
/// as heads, and heads that make up the hidden size.
void fill_heads(const HfType& type, Variables& variables) {
  for (const HfField& field : type.fields) {
    if (field.variable == "kv_heads") {
      variables.try_emplace("kv_heads", variables.at("heads"));
      if (variables.at("heads") > 0) {
        variables.try_emplace("head_dim",
                              std::floor(variables.at("hidden") / variables.at("heads")));
      }
    }
  }
}

/// A type that does not read head_dim has heads of hidden / heads; DeepSeek's configs call the
/// width of the rotary part so. ERRORS: another width.
void check_head_width(const HfType& type, const JsonView& config, const Variables& variables,
                      const std::string& file) {
  const bool reads = std::any_of(type.fields.begin(), type.fields.end(),
                                 [](const HfField& field) { return field.key == "head_dim"; });
  const auto hidden = variables.find("hidden"), heads = variables.find("heads");
  if (reads || type.architecture == "deepseek" || !has_hf_field(config, "head_dim") ||
      hidden == variables.end() || heads == variables.end() || heads->second == 0) {
    return;
  }
  const double width = std::floor(hidden->second / heads->second);
  if (static_cast<double>(hf_field(config, "head_dim")) != width) {
    throw Error(fmt::format("this {} has no width of heads of its own", type.name))
        .at(file)
        .field("head_dim")
        .expected(fmt::format("{:.0f}, hidden_size / num_attention_heads, or none", width))
        .hint("a model file can say so: docs/formats/model.md");
  }
}

}  // namespace

std::vector<std::string_view> hf_model_types() {
  std::vector<std::string_view> names;
  for (const HfType& type : hf_types()) {
    names.push_back(type.name);
  }
  return names;
}

Model parse_hf_config(std::string_view text, const std::string& file, const Variables& given) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || (text[begin] != '{' && text[begin] != '[')) {
    throw Error("no JSON object")
        .at(file)
        .expected("a Hugging Face config.json")
        .hint("--model-file reads a model file in YAML");
  }
  const Json json = parse_json(text, file);
  const JsonView config(json, file);
  const std::vector<HfType> types = hf_types();
  const HfType& type = type_of(config, types);
  for (const HfDemand& demand : type.demands) {
    if (has_hf_field(config, demand.key) && hf_field(config, demand.key) != demand.value) {
      throw Error(fmt::format("layers of this {} differ from the built-in ones", type.name))
          .at(file)
          .field(std::string(demand.key))
          .expected(fmt::format("{}", demand.value))
          .hint("a model file can say so: docs/formats/model.md");
    }
  }
  if (has_hf_field(config, "mlp_only_layers") && config["mlp_only_layers"].size() > 0) {
    throw config["mlp_only_layers"]
        .error("dense layers between those with experts")
        .expected("[]")
        .hint("a model file can say so: docs/formats/model.md");
  }
  Variables variables = type.otherwise;
  for (const HfField& field : type.fields) {
    if (field.required || has_hf_field(config, field.key)) {
      variables[std::string(field.variable)] =
          static_cast<double>(hf_field(config, field.key) + field.add);
    } else if (field.variable == "window" && config.has(field.key)) {
      variables["window"] = 0;  // null: there is none
    }
  }
  if (type.adapt != nullptr) {
    type.adapt(config, variables);
  }
  check_head_width(type, config, variables, file);
  fill_heads(type, variables);
  const auto layers = static_cast<std::int64_t>(variables.at("layers"));
  if (given.contains("layers")) {
    variables.erase("decoder_layers");  // as many
  }
  for (const auto& [name, value] : given) {
    variables[name] = value;
  }
  Model model = with_context(fmt::format("while making the {} of {}", type.name, printable(file)),
                             [&] { return find_model(type.architecture, variables); });
  check_hf_layer_types(config, layers, model);
  model.name = type.name;
  model.source = file;
  return model;
}

Model read_hf_config(const std::string& path, const Variables& given) {
  std::error_code ignored;
  if (path != "-" && !std::filesystem::exists(path, ignored)) {
    throw Error("cannot read the file: there is none")
        .at(path)
        .expected("a local config.json; nothing is downloaded")
        .hint(known_model_hint(path));
  }
  const FileText text(path, Bytes(kMaxText));
  return parse_hf_config(text.view(), path, given);
}

}  // namespace lockstep
