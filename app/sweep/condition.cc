#include "app/sweep/condition.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "generator/model/expression.h"

namespace lockstep {
namespace {

std::optional<double> quantity(const std::string& text) {
  if (const auto number = to_double(text)) {
    return number;
  }
  const auto attempt = [&](auto parse, auto value) -> std::optional<double> {
    try {
      return value(parse(text));
    } catch (const Error&) {
      return std::nullopt;
    }
  };
  if (text.empty() || text.front() < '0' || text.front() > '9') {
    return std::nullopt;
  }
  if (const auto rate = attempt(
          parse_bandwidth, [](Bandwidth b) { return static_cast<double>(b.bits_per_second()); })) {
    return rate;
  }
  if (const auto size =
          attempt(parse_bytes, [](Bytes b) { return static_cast<double>(b.count()); })) {
    return size;
  }
  return attempt(parse_time, [](Time t) { return t.seconds(); });
}

std::string variable_of(std::string flag) {
  std::ranges::replace(flag, '-', '_');
  flag.erase(0, flag.find_first_not_of('_'));
  return flag;
}

}  // namespace

Condition::Condition(std::string text, std::string file, std::size_t line)
    : text_(std::move(text)), file_(std::move(file)), line_(line) {
  for (std::size_t at = 0; at < text_.size(); ++at) {
    const char quote = text_[at];
    if (quote != '\'' && quote != '"') {
      expression_ += quote;
      continue;
    }
    const std::size_t end = text_.find(quote, at + 1);
    if (end == std::string::npos) {
      throw Error("a quote is not closed").at(file_, line_).field("where");
    }
    const std::string name = fmt::format("text__{}", literals_.size());
    literals_[name] = text_.substr(at + 1, end - at - 1);
    expression_ += " " + name + " ";
    at = end;
  }
}

bool Condition::holds(const std::vector<std::pair<std::string, FlagValue>>& inputs) const {
  // Texts stand for numbers that nothing else is: fractions above 10^12.
  std::map<std::string, double> numbers;
  const auto number_of = [&](const std::string& text) {
    if (const auto value = quantity(text)) {
      return *value;
    }
    return numbers.try_emplace(text, 1e12 + 0.5 + static_cast<double>(numbers.size()))
        .first->second;
  };
  Variables variables;
  for (const auto& [flag, value] : inputs) {
    const std::string name = variable_of(flag);
    if (is_variable_name(name)) {
      const std::string text = to_text(value);
      variables[name] = value.empty() ? 0 : value == FlagValue{""} ? 1 : number_of(text);
    }
  }
  for (const auto& [name, text] : literals_) {
    variables[name] = number_of(text);
  }
  return evaluate(expression_, variables, {.file = file_, .line = line_, .field = "where"}) != 0;
}

}  // namespace lockstep
