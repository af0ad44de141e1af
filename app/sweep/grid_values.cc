#include "app/sweep/grid_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "generator/model/yaml_fields.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMostValues = 1'000'000;
using Room = std::function<void(std::int64_t)>;

/// A number and the text after it, such as a unit.
struct Measure {
  double number = 0;
  std::string unit;
};

Measure measure_of(const YamlFields& fields, std::string_view key) {
  const std::string text = fields.text(key);
  const std::size_t end = text.find_first_not_of("0123456789.+-eE");
  std::size_t digits = end == std::string::npos ? text.size() : end;
  // "1e9" is a number, the E of "1EiB" is none.
  while (digits > 0 && to_double(text.substr(0, digits)) == std::nullopt) {
    --digits;
  }
  const auto number = to_double(text.substr(0, digits));
  if (!number || !std::isfinite(*number)) {
    throw fields.error(fmt::format("'{}' is no number", printable(text)), key)
        .expected("a number, perhaps with a unit: 100 or 400Gbps");
  }
  return {*number, text.substr(digits)};
}

FlagValue with_unit(double number, const std::string& unit) {
  // 12 digits: enough for any flag, and 0.1 + 0.2 is 0.3.
  return {fmt::format("{:.12g}{}", number, unit)};
}

std::vector<FlagValue> range(const YamlFields& fields, const Room& room) {
  constexpr std::array<std::string_view, 5> kKeys{"from", "to", "step", "steps", "scale"};
  fields.allow(kKeys);
  const Measure from = measure_of(fields, "from");
  const Measure to = measure_of(fields, "to");
  if (from.unit != to.unit) {
    throw fields
        .error(fmt::format("begins in '{}' and ends in '{}'", printable(from.unit),
                           printable(to.unit)))
        .expected("one unit");
  }
  constexpr std::array<std::string_view, 2> kScales{"linear", "log"};
  const bool log = fields.has("scale") && fields.choice("scale", kScales) == 1;
  if (fields.has("step") == fields.has("steps")) {
    throw fields.error("needs either step (a difference) or steps (a number of values)");
  }
  std::vector<FlagValue> values;
  if (fields.has("step")) {
    const Measure step = measure_of(fields, "step");
    if (log) {
      throw fields.error("a logarithmic range has no step (a difference)", "step")
          .expected("steps: a number of values");
    }
    if (step.number == 0 || (step.number > 0) != (to.number >= from.number) ||
        (!step.unit.empty() && step.unit != from.unit)) {
      throw fields.error("step does not lead from 'from' to 'to'", "step");
    }
    const double count = std::floor((to.number - from.number) / step.number + 1e-9) + 1;
    if (count > static_cast<double>(kMostValues)) {
      throw fields.error(fmt::format("more than {} values", kMostValues), "step");
    }
    room(static_cast<std::int64_t>(count));
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(count); ++i) {
      values.push_back(with_unit(from.number + step.number * static_cast<double>(i), from.unit));
    }
    return values;
  }
  const std::int64_t steps = fields.whole("steps", {}, 2, kMostValues);
  if (log && (from.number <= 0 || to.number <= 0)) {
    throw fields.error("a logarithmic range needs numbers above 0", "scale");
  }
  room(steps);
  for (std::int64_t i = 0; i < steps; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(steps - 1);
    values.push_back(with_unit(log ? from.number * std::pow(to.number / from.number, share)
                                   : from.number + (to.number - from.number) * share,
                               from.unit));
  }
  return values;
}

std::vector<FlagValue> seeds(const YamlFields& fields, const Room& room) {
  constexpr std::array<std::string_view, 2> kKeys{"seeds", "first"};
  fields.allow(kKeys);
  const std::int64_t count = fields.whole("seeds", {}, 1, kMostValues);
  const std::int64_t first = fields.whole_or("first", {}, 0, std::int64_t{1} << 52, 1);
  room(count);
  std::vector<FlagValue> values;
  for (std::int64_t seed = first; seed < first + count; ++seed) {
    values.push_back({std::to_string(seed)});
  }
  return values;
}

std::string word(const YAML::Node& node, const std::string& file, const std::string& field) {
  const std::string& text = node.Scalar();
  if (std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 32; })) {
    throw yaml_error("has control characters", node, file, field);
  }
  if (text.empty()) {
    throw yaml_error("is an empty text", node, file, field)
        .expected("a value; true for a flag without one, false or null to leave it out");
  }
  return text;
}

}  // namespace

FlagValue grid_value(const YAML::Node& node, const std::string& file, const std::string& field) {
  if (node.IsNull()) {
    return {};
  }
  if (node.IsScalar()) {
    const std::string text = word(node, file, field);
    const bool quoted = node.Tag() == "!";
    if (!quoted && (text == "true" || text == "false")) {
      return text == "true" ? FlagValue{""} : FlagValue{};
    }
    return {text};
  }
  if (!node.IsSequence()) {
    throw yaml_error("is no value", node, file, field)
        .expected("a text, a number, true, false or a list of those");
  }
  FlagValue value;
  for (const YAML::Node& item : node) {
    if (!item.IsScalar()) {
      throw yaml_error("holds a value that is no text", item, file, field);
    }
    value.push_back(word(item, file, field));
  }
  return value;
}

std::vector<FlagValue> grid_values(const YAML::Node& node, const std::string& file,
                                   const std::string& field, const Room& room) {
  if (node.IsMap()) {
    const YamlFields fields(node, file, field);
    return fields.has("seeds") ? seeds(fields, room) : range(fields, room);
  }
  if (!node.IsSequence() || node.size() == 0) {
    throw yaml_error("has no values", node, file, field)
        .expected("a list, {from, to, step}, {from, to, steps} or {seeds: N}");
  }
  if (node.size() > static_cast<std::size_t>(kMostValues)) {
    throw yaml_error(fmt::format("more than {} values", kMostValues), node, file, field);
  }
  room(static_cast<std::int64_t>(node.size()));
  std::vector<FlagValue> values;
  for (const YAML::Node& item : node) {
    values.push_back(grid_value(item, file, field));
  }
  return values;
}

}  // namespace lockstep
