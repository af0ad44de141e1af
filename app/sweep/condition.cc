#include "app/sweep/condition.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "app/goodput/duration.h"
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
  if (const auto time = attempt(parse_time, [](Time t) { return t.seconds(); })) {
    return time;
  }
  return attempt(parse_duration_s, [](double seconds) { return seconds; });
}

constexpr std::string_view kWordCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";

std::string variable_of(std::string_view flag) {
  std::string name = with_underscores(flag);
  name.erase(0, name.find_first_not_of('_'));
  return name;
}

}  // namespace

Condition::Condition(std::string text, std::string file, std::size_t line)
    : text_(std::move(text)), file_(std::move(file)), line_(line) {
  const auto add_literal = [&](std::string literal) {
    const std::string name = fmt::format("text__{}", literals_.size());
    literals_[name] = std::move(literal);
    expression_ += " " + name + " ";
  };
  for (std::size_t at = 0; at < text_.size();) {
    const char first = text_[at];
    if (first == '\'' || first == '"') {
      const std::size_t end = text_.find(first, at + 1);
      if (end == std::string::npos) {
        throw Error("a quote is not closed").at(file_, line_).field("where");
      }
      add_literal(text_.substr(at + 1, end - at - 1));
      at = end + 1;
      continue;
    }
    // A word: a name, a number or a number with its unit.
    const std::size_t end =
        std::min(text_.size(), std::max(at + 1, text_.find_first_not_of(kWordCharacters, at)));
    const std::string word = text_.substr(at, end - at);
    if (is_digit(first) && !to_double(word) && quantity(word)) {
      add_literal(word);
    } else {
      expression_ += word;
    }
    at = end;
  }
}

/// `sign`: of the numbers that stand for texts.
double Condition::value(const std::vector<std::pair<std::string, FlagValue>>& inputs, double sign,
                        bool& has_texts) const {
  // Texts stand for numbers that nothing else is: fractions beyond 10^12.
  std::map<std::string, double> numbers;
  const auto number_of = [&](const std::string& text) {
    if (const auto value = quantity(text)) {
      return *value;
    }
    has_texts = true;
    return numbers.try_emplace(text, sign * (1e12 + 0.5 + static_cast<double>(numbers.size())))
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
  return evaluate(expression_, variables, {.file = file_, .line = line_, .field = "where"});
}

bool Condition::holds(const std::vector<std::pair<std::string, FlagValue>>& inputs) const {
  bool has_texts = false;
  const double found = value(inputs, 1, has_texts);
  // Whether texts are equal does not depend on which numbers stand for them; all else does.
  if (has_texts && value(inputs, -1, has_texts) != found) {
    throw Error("a text is compared by order, or reckoned with")
        .at(file_, line_)
        .field("where")
        .expected(
            "== or != beside a text; numbers, or ones with a unit such as 200GBps, elsewhere");
  }
  return found != 0;
}

}  // namespace lockstep
