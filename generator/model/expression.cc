#include "generator/model/expression.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

constexpr int kMaxDepth = 64;
constexpr std::size_t kMaxLength = 4096;
constexpr double kExact = 9007199254740992;  // 2^53
constexpr std::array<std::string_view, 5> kFunctions{"ceil_div", "if", "max", "min", "round_up"};

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Recursive descent. `live` is false in the part of an `if` that was not chosen: it is checked
/// for syntax and names, but a division by zero there is no error.
class Parser {
 public:
  Parser(std::string_view text, const Variables& variables, const ExpressionPlace& place)
      : text_(text), variables_(variables), place_(place) {}

  double whole_text() {
    const double value = comparison();
    skip_blanks();
    if (position_ < text_.size()) {
      const char next = text_[position_];
      Error error =
          problem(fmt::format("'{}' is not expected here", printable(text_.substr(position_))));
      throw next == ',' ? std::move(error).hint("numbers are written without separators")
      : starts_name(next) || is_digit(next) || next == '('
          ? std::move(error).hint("an operator is missing, such as *")
          : error;
    }
    return value;
  }

 private:
  Error problem(std::string message) const {
    return Error(fmt::format("{} in the expression '{}', column {}", message, printable(text_),
                             std::min(position_, text_.size()) + 1))
        .at(place_.file, place_.line)
        .field(place_.field);
  }

  void skip_blanks() {
    while (position_ < text_.size() &&
           std::isspace(static_cast<unsigned char>(text_[position_])) != 0) {
      ++position_;
    }
  }

  bool accept(std::string_view token) {
    skip_blanks();
    if (!text_.substr(position_).starts_with(token)) {
      return false;
    }
    position_ += token.size();
    return true;
  }

  void expect(std::string_view token) {
    if (!accept(token)) {
      throw problem(fmt::format("'{}' is missing", token));
    }
  }

  double checked(double value) const {
    if (live_ && !(std::fabs(value) <= kExact)) {
      throw problem("a value beyond 2^53");
    }
    return live_ ? value : 0;
  }

  double comparison() {
    const double left = sum();
    // The longer tokens first: "<=" begins with "<".
    for (const std::string_view token : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (accept(token)) {
        const double right = sum();
        const bool holds = token == "=="   ? left == right
                           : token == "!=" ? left != right
                           : token == "<=" ? left <= right
                           : token == ">=" ? left >= right
                           : token == "<"  ? left < right
                                           : left > right;
        return holds ? 1 : 0;
      }
    }
    return left;
  }

  double sum() {
    double value = product();
    for (;;) {
      if (accept("+")) {
        value = checked(value + product());
      } else if (accept("-")) {
        value = checked(value - product());
      } else {
        return value;
      }
    }
  }

  double product() {
    double value = factor();
    for (;;) {
      if (accept("*")) {
        value = checked(value * factor());
      } else if (accept("//")) {
        value = checked(std::floor(value / divisor(factor())));
      } else if (accept("/")) {
        value = checked(value / divisor(factor()));
      } else if (accept("%")) {
        const double by = divisor(factor());
        const double rest = std::fmod(value, by);
        value = checked(rest != 0 && (rest < 0) != (by < 0) ? rest + by : rest);
      } else {
        return value;
      }
    }
  }

  double divisor(double value) const {
    if (value != 0) {
      return value;
    }
    if (live_) {
      throw problem("division by zero");
    }
    return 1;
  }

  double factor() {
    if (++depth_ > kMaxDepth) {
      throw problem(fmt::format("nesting deeper than {}", kMaxDepth));
    }
    const double value = unnested_factor();
    --depth_;
    return value;
  }

  double unnested_factor() {
    if (accept("-")) {
      return -factor();
    }
    if (accept("(")) {
      const double value = comparison();
      expect(")");
      return value;
    }
    skip_blanks();
    if (position_ >= text_.size()) {
      throw problem("a number, a variable or '(' is missing at the end");
    }
    if (is_digit(text_[position_]) || text_[position_] == '.') {
      return number();
    }
    if (starts_name(text_[position_])) {
      return name();
    }
    Error error =
        problem(fmt::format("'{}' is not expected here", printable(text_.substr(position_, 1))));
    const bool power = text_[position_] == '*' && position_ > 0 && text_[position_ - 1] == '*';
    throw power ? std::move(error).hint("there are no powers: write 2 * 2 * 2, or the number")
                : error;
  }

  double number() {
    const std::size_t begin = position_;
    const auto digits = [this] {
      while (position_ < text_.size() && (is_digit(text_[position_]) || text_[position_] == '.')) {
        ++position_;
      }
    };
    digits();
    if (position_ < text_.size() && (text_[position_] == 'e' || text_[position_] == 'E')) {
      ++position_;
      if (position_ < text_.size() && (text_[position_] == '+' || text_[position_] == '-')) {
        ++position_;
      }
      digits();
    }
    const std::string_view word = text_.substr(begin, position_ - begin);
    const std::optional<double> value = to_double(word);
    if (!value) {
      position_ = begin;
      throw problem(fmt::format("'{}' is no number", printable(word)));
    }
    return checked(*value);
  }

  double name() {
    const std::size_t begin = position_;
    while (position_ < text_.size() &&
           (starts_name(text_[position_]) || is_digit(text_[position_]))) {
      ++position_;
    }
    const std::string_view word = text_.substr(begin, position_ - begin);
    if (accept("(")) {
      return call(word, begin);
    }
    const auto found = variables_.find(std::string(word));
    if (found == variables_.end()) {
      std::vector<std::string_view> known;
      for (const auto& [variable, value] : variables_) {
        known.push_back(variable);
      }
      throw unknown("variable", word, known, begin);
    }
    return checked(found->second);
  }

  Error unknown(std::string_view what, std::string_view word,
                std::span<const std::string_view> known, std::size_t begin) {
    position_ = begin;
    Error error = problem(fmt::format("unknown {} '{}'", what, printable(word)))
                      .expected(known.empty() ? "a number" : join(known, ", "));
    const std::string_view near = closest(word, known);
    return near.empty() ? error : std::move(error).hint(fmt::format("did you mean {}?", near));
  }

  double call(std::string_view function, std::size_t begin) {
    if (std::find(kFunctions.begin(), kFunctions.end(), function) == kFunctions.end()) {
      throw unknown("function", function, kFunctions, begin);
    }
    if (function == "if") {
      return conditional();
    }
    std::vector<double> values{comparison()};
    while (accept(",")) {
      values.push_back(comparison());
    }
    expect(")");
    if (function == "min" || function == "max") {
      return function == "min" ? *std::min_element(values.begin(), values.end())
                               : *std::max_element(values.begin(), values.end());
    }
    if (values.size() != 2) {
      position_ = begin;
      throw problem(fmt::format("{} takes 2 values, not {}", function, values.size()));
    }
    const double by = divisor(values[1]);
    const double quotient = std::ceil(values[0] / by);
    return checked(function == "ceil_div" ? quotient : quotient * by);
  }

  double conditional() {
    const bool live = live_;
    const bool holds = comparison() != 0;
    expect(",");
    live_ = live && holds;
    const double yes = comparison();
    expect(",");
    live_ = live && !holds;
    const double no = comparison();
    live_ = live;
    expect(")");
    return holds ? yes : no;
  }

  std::string_view text_;
  const Variables& variables_;
  const ExpressionPlace& place_;
  std::size_t position_ = 0;
  int depth_ = 0;
  bool live_ = true;
};

}  // namespace

double evaluate(std::string_view text, const Variables& variables, const ExpressionPlace& place) {
  if (text.size() > kMaxLength) {
    throw Error(fmt::format("an expression of {} characters", text.size()))
        .at(place.file, place.line)
        .field(place.field)
        .expected(fmt::format("at most {}", kMaxLength));
  }
  return Parser(text, variables, place).whole_text();
}

std::int64_t evaluate_whole(std::string_view text, const Variables& variables,
                            const ExpressionPlace& place, std::int64_t low, std::int64_t high) {
  const double value = evaluate(text, variables, place);
  const bool fraction = value != std::floor(value);
  // Results are within 2^53, where whole doubles and int64 agree.
  if (fraction || static_cast<std::int64_t>(value) < low ||
      static_cast<std::int64_t>(value) > high) {
    throw Error(fmt::format("{} ('{}') is {}", value, printable(text),
                            fraction ? "no whole number" : "out of range"))
        .at(place.file, place.line)
        .field(place.field)
        .expected(fmt::format("a whole number from {} to {}", low, high));
  }
  return static_cast<std::int64_t>(value);
}

bool is_variable_name(std::string_view name) {
  return !name.empty() && starts_name(name[0]) && std::all_of(name.begin(), name.end(), [](char c) {
    return starts_name(c) || is_digit(c);
  }) && std::find(kFunctions.begin(), kFunctions.end(), name) == kFunctions.end();
}

}  // namespace lockstep
