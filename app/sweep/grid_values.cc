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
  if (std::abs(*number) >= 0x1p53 && text.find_first_not_of("+-0123456789") >= digits) {
    throw fields.error(fmt::format("'{}' has more digits than a range keeps", printable(text)), key)
        .expected("whole numbers below 2^53, or a list of values");
  }
  return {*number, text.substr(digits)};
}

bool is_exact_whole(double number) {
  return std::trunc(number) == number && std::abs(number) < 0x1p53;
}

/// From 12 digits on the first that are the number but for what it may be off by: 0.1 + 0.2 is 0.3,
/// -0.3 + 3 * 0.1 is 0, and 2^40 is 1099511627776.
FlagValue with_unit(double number, double off, const std::string& unit) {
  if (std::abs(number) <= off) {
    return {"0" + unit};
  }
  for (int digits = 12; digits <= 17; ++digits) {
    const std::string text = fmt::format("{:.{}g}", number, digits);
    const double value = *to_double(text);
    if (std::abs(value - number) <= off || digits == 17) {
      return {(is_exact_whole(value) ? fmt::format("{:.0f}", value + 0.0) : text) + unit};
    }
  }
  return {};  // not reached
}

/// The values of `count` places from `from` on, a difference apart.
std::vector<FlagValue> spaced(const Measure& from, double step, double to, std::int64_t count) {
  // A sum of whole numbers is exact, any other one to a few of its last bits.
  const double off = is_exact_whole(from.number) && is_exact_whole(step)
                         ? 0
                         : 8 * 0x1p-52 * std::max(std::abs(from.number), std::abs(to));
  std::vector<FlagValue> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(with_unit(from.number + step * static_cast<double>(i), off, from.unit));
  }
  return values;
}

/// As many places between two numbers, each so many times the one before, to 12 digits.
std::vector<FlagValue> spaced_by_factor(const Measure& from, double to, std::int64_t count) {
  std::vector<FlagValue> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(count - 1);
    const bool is_end = i == 0 || i == count - 1;
    const double number = i == 0           ? from.number
                          : i == count - 1 ? to
                                           : from.number * std::pow(to / from.number, share);
    values.push_back(with_unit(number, is_end ? 0 : 1e-11 * number, from.unit));
  }
  return values;
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
    return spaced(from, step.number, to.number, static_cast<std::int64_t>(count));
  }
  const std::int64_t steps = fields.whole("steps", {}, 2, kMostValues);
  if (log && (from.number <= 0 || to.number <= 0)) {
    throw fields.error("a logarithmic range needs numbers above 0", "scale");
  }
  room(steps);
  return log ? spaced_by_factor(from, to.number, steps)
             : spaced(from, (to.number - from.number) / static_cast<double>(steps - 1), to.number,
                      steps);
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
