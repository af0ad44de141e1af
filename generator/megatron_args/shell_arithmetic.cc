#include "generator/megatron_args/shell_arithmetic.h"

#include <array>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

using Value = std::optional<std::int64_t>;

constexpr int kMaxDepth = 500;  // a bracket takes up to three levels

struct BinaryOperator {
  std::string_view text;
  int strength;
};
// Longer ones before those they begin with.
constexpr auto kOperators = std::to_array<BinaryOperator>({{"**", 11},
                                                           {"<<", 8},
                                                           {">>", 8},
                                                           {"<=", 7},
                                                           {">=", 7},
                                                           {"==", 6},
                                                           {"!=", 6},
                                                           {"&&", 2},
                                                           {"||", 1},
                                                           {"*", 10},
                                                           {"/", 10},
                                                           {"%", 10},
                                                           {"+", 9},
                                                           {"-", 9},
                                                           {"<", 7},
                                                           {">", 7},
                                                           {"&", 5},
                                                           {"^", 4},
                                                           {"|", 3}});

class Evaluator {
 public:
  Evaluator(std::string_view text, const std::string& file, std::size_t line,
            const std::function<Value(std::string_view)>& variable)
      : text_(text), file_(file), line_(line), variable_(variable) {}

  Value whole() {
    skip();
    if (at_ == text_.size()) {
      return 0;  // as in bash
    }
    const Value value = choice();
    if (at_ != text_.size()) {
      throw wrong("this is no expression");
    }
    return value;
  }

 private:
  Error wrong(const std::string& message) const {
    return Error(fmt::format("{}: $(({}))", message, printable(text_))).at(file_, line_);
  }
  void skip() {
    while (at_ < text_.size() &&
           std::string_view(" \t\r\n").find(text_[at_]) != std::string::npos) {
      ++at_;
    }
  }
  bool take(std::string_view what) {
    if (!text_.substr(at_).starts_with(what)) {
      return false;
    }
    at_ += what.size();
    skip();
    return true;
  }

  /// Counts how deep the recursion is.
  class Level {
   public:
    explicit Level(const Evaluator& evaluator) : depth_(evaluator.depth_) {
      if (++depth_ > kMaxDepth) {
        throw evaluator.wrong("this is nested too deeply");
      }
    }
    ~Level() { --depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    int& depth_;
  };

  Value choice() {
    const Level level(*this);
    const Value condition = binary(1);
    if (!take("?")) {
      return condition;
    }
    const Value yes = choice();
    if (!take(":")) {
      throw wrong("':' is missing");
    }
    const Value no = choice();
    return !condition ? Value() : *condition != 0 ? yes : no;
  }

  Value binary(int least) {
    const Level level(*this);
    Value left = unary();
    for (;;) {
      const BinaryOperator* found = nullptr;
      for (const BinaryOperator& each : kOperators) {
        if (found == nullptr && text_.substr(at_).starts_with(each.text)) {
          found = &each;
        }
      }
      if (found == nullptr || found->strength < least) {
        return left;
      }
      take(found->text);
      // ** binds to the right.
      const Value right = binary(found->text == "**" ? found->strength : found->strength + 1);
      left = left && right ? apply(found->text, *left, *right) : Value();
    }
  }

  Value apply(std::string_view op, std::int64_t a, std::int64_t b) const {
    std::int64_t result = 0;
    bool overflow = false;
    if (op == "+") {
      overflow = __builtin_add_overflow(a, b, &result);
    } else if (op == "-") {
      overflow = __builtin_sub_overflow(a, b, &result);
    } else if (op == "*") {
      overflow = __builtin_mul_overflow(a, b, &result);
    } else if (op == "/" || op == "%") {
      if (b == 0) {
        throw wrong("division by zero");
      }
      overflow = a == std::numeric_limits<std::int64_t>::min() && b == -1;
      result = overflow ? 0 : op == "/" ? a / b : a % b;
    } else if (op == "**") {
      overflow = b < 0;
      result = 1;
      for (std::int64_t i = 0; i < b && !overflow && (a > 1 || a < -1 || i < 2); ++i) {
        overflow = __builtin_mul_overflow(result, a, &result);
      }
      result = a == -1 ? (b % 2 == 0 ? 1 : -1) : result;
    } else if (op == "<<" || op == ">>") {
      overflow = b < 0 || b > 62 || a < 0;
      overflow = overflow || (op == "<<" && a > (std::numeric_limits<std::int64_t>::max() >> b));
      result = overflow ? 0 : op == "<<" ? a << b : a >> b;
    } else {
      result = op == "<"    ? a < b
               : op == ">"  ? a > b
               : op == "<=" ? a <= b
               : op == ">=" ? a >= b
               : op == "==" ? a == b
               : op == "!=" ? a != b
               : op == "&&" ? a != 0 && b != 0
               : op == "||" ? a != 0 || b != 0
               : op == "&"  ? a & b
               : op == "|"  ? a | b
                            : a ^ b;
    }
    if (overflow) {
      throw wrong("the result is out of range");
    }
    return result;
  }

  Value unary() {
    const Level level(*this);
    Value value;
    if (take("(")) {
      value = choice();
      if (!take(")")) {
        throw wrong("')' is missing");
      }
    } else if (take("!")) {
      value = unary();
      value = value ? Value(*value == 0 ? 1 : 0) : value;
    } else if (take("~")) {
      value = unary();
      value = value ? Value(~*value) : value;
    } else if (take("-")) {
      value = unary();
      value = value ? apply("-", 0, *value) : value;
    } else if (take("+")) {
      value = unary();
    } else {
      value = primary();
    }
    return value;
  }

  Value primary() {
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           ((text_[at_] >= 'a' && text_[at_] <= 'z') || (text_[at_] >= 'A' && text_[at_] <= 'Z') ||
            text_[at_] == '_' || (text_[at_] >= '0' && text_[at_] <= '9'))) {
      ++at_;
    }
    const std::string_view word = text_.substr(begin, at_ - begin);
    skip();
    if (word.empty()) {
      throw wrong("a number or a variable is missing");
    }
    if (word.front() < '0' || word.front() > '9') {
      return variable_(word);
    }
    const Value number = to_int(word);
    if (!number) {
      throw wrong(fmt::format("'{}' is no number we can hold", printable(word)));
    }
    return number;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t line_;
  const std::function<Value(std::string_view)>& variable_;
  std::size_t at_ = 0;
  mutable int depth_ = 0;
};

}  // namespace

std::optional<std::int64_t> shell_arithmetic(
    std::string_view text, const std::string& file, std::size_t line,
    const std::function<std::optional<std::int64_t>(std::string_view)>& variable) {
  return Evaluator(text, file, line, variable).whole();
}

}  // namespace lockstep
