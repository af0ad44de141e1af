#include "generator/megatron_args/shell_arithmetic.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "generator/megatron_args/shell_lexer.h"

namespace lockstep {
namespace {

using Value = std::optional<std::int64_t>;

constexpr int kMaxDepth = 500;  // a bracket takes up to five levels

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
constexpr auto kAssignments = std::to_array<std::string_view>(
    {"<<=", ">>=", "*=", "/=", "%=", "+=", "-=", "&=", "^=", "|=", "="});

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return is_shell_name(std::string{'_', c}); }

/// Of a digit in a base of up to 64, as bash has them; 64: it is none.
int digit_of(char c, int base) {
  return is_digit(c)            ? c - '0'
         : c >= 'a' && c <= 'z' ? c - 'a' + 10
         : c >= 'A' && c <= 'Z' ? c - 'A' + (base <= 36 ? 10 : 36)
         : c == '@' || c == '_' ? (c == '@' ? 62 : 63)
                                : 64;
}

/// 12, 017, 0x1f or 2#101; nothing: it is no number, or none that we can hold.
Value number_of(std::string_view word) {
  int base = 10;
  if (const std::size_t sharp = word.find('#'); sharp != std::string_view::npos) {
    base = static_cast<int>(to_int(word.substr(0, std::min<std::size_t>(sharp, 3))).value_or(0));
    word.remove_prefix(sharp + 1);
  } else if (word.starts_with("0x") || word.starts_with("0X")) {
    base = 16;
    word.remove_prefix(2);
  } else if (word.size() > 1 && word[0] == '0') {
    base = 8;
  }
  std::int64_t value = 0;
  bool wrong = base < 2 || base > 64 || word.empty();
  for (const char c : word) {
    const int digit = digit_of(c, base);
    wrong = wrong || digit >= base || __builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, digit, &value);
  }
  return wrong ? Value() : Value(value);
}

class Evaluator {
 public:
  Evaluator(std::string_view text, const std::string& file, std::size_t line,
            const ShellNumberOf& variable, const ShellSetNumber& assign)
      : text_(text), file_(file), line_(line), variable_(variable), assign_(assign) {}

  Value whole() {
    skip();
    if (at_ == text_.size()) {
      return 0;  // as in bash
    }
    const Value value = all();
    if (at_ != text_.size()) {
      throw wrong("this is no expression");
    }
    return value;
  }

 private:
  /// Whether what is read counts.
  enum class Counts : std::uint8_t { kYes, kMaybe, kNo };

  Error wrong(const std::string& message) const {
    return Error(fmt::format("{}: $(({}))", message, printable(text_))).at(file_, line_);
  }
  void skip() {
    while (at_ < text_.size() &&
           std::string_view(" \t\r\n").find(text_[at_]) != std::string::npos) {
      ++at_;
    }
  }
  bool starts(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  bool take(std::string_view what) {
    if (!starts(what)) {
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

  /// What `what` gives where it counts only if `condition` is `wanted`.
  template <class What>
  Value where(const Value& condition, bool wanted, const What& what) {
    const Counts outer = counts_;
    if (condition && (*condition != 0) != wanted) {
      counts_ = Counts::kNo;
    } else if (!condition && outer == Counts::kYes) {
      counts_ = Counts::kMaybe;
    }
    const Value value = what();
    counts_ = outer;
    return value;
  }

  Value all() {
    Value value = assignment();
    while (take(",")) {
      value = assignment();
    }
    return value;
  }

  Value assignment() {
    const Level level(*this);
    const std::size_t begin = at_;
    if (at_name()) {
      skip_name();
      for (const std::string_view op : kAssignments) {
        if (starts(op) && !starts("==")) {
          take(op);
          const std::size_t behind = at_;
          at_ = begin;
          const std::string name = reference();
          at_ = behind;
          const Value right = assignment();
          return set(name, op == "=" ? right : both(op.substr(0, op.size() - 1), get(name), right));
        }
      }
      at_ = begin;
    }
    return choice();
  }

  Value choice() {
    const Level level(*this);
    const Value condition = binary(1);
    if (!take("?")) {
      return condition;
    }
    const Value yes = where(condition, true, [&] { return all(); });
    if (!take(":")) {
      throw wrong("':' is missing");
    }
    const Value no = where(condition, false, [&] { return choice(); });
    return condition ? (*condition != 0 ? yes : no) : yes == no ? yes : Value();
  }

  Value binary(int least) {
    const Level level(*this);
    Value left = unary();
    for (;;) {
      const BinaryOperator* found = nullptr;
      for (const BinaryOperator& each : kOperators) {
        if (found == nullptr && starts(each.text)) {
          found = &each;
        }
      }
      if (found == nullptr || found->strength < least) {
        return left;
      }
      take(found->text);
      // ** binds to the right.
      const int next = found->text == "**" ? found->strength : found->strength + 1;
      if (found->text == "&&" || found->text == "||") {
        const bool wanted = found->text == "&&";
        const Value right = where(left, wanted, [&] { return binary(next); });
        const auto decides = [&](const Value& side) { return side && (*side != 0) != wanted; };
        left = decides(left) || decides(right) ? Value(wanted ? 0 : 1)
               : left && right                 ? Value(wanted ? 1 : 0)
                                               : Value();
      } else {
        left = both(found->text, left, binary(next));
      }
    }
  }

  Value both(std::string_view op, const Value& a, const Value& b) const {
    if (!a || !b || counts_ == Counts::kNo) {
      return std::nullopt;
    }
    return apply(op, *a, *b);
  }

  Value failed(const std::string& why) const {
    if (counts_ == Counts::kYes) {
      throw wrong(why);
    }
    return std::nullopt;
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
        return failed("division by zero");
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
               : op == "&"  ? a & b
               : op == "|"  ? a | b
                            : a ^ b;
    }
    return overflow ? failed("the result is out of range") : Value(result);
  }

  Value unary() {
    const Level level(*this);
    for (const std::string_view twice : {"++", "--"}) {
      const std::size_t begin = at_;
      if (take(twice)) {
        if (at_name()) {
          const std::string name = reference();
          return set(name, both(twice.substr(1), get(name), 1));
        }
        at_ = begin;  // two signs
      }
    }
    Value value;
    if (take("(")) {
      value = all();
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
      value = both("-", 0, unary());
    } else if (take("+")) {
      value = unary();
    } else {
      value = primary();
    }
    return value;
  }

  Value primary() {
    if (at_name()) {
      const std::string name = reference();
      const Value value = get(name);
      for (const std::string_view twice : {"++", "--"}) {
        if (take(twice)) {
          set(name, both(twice.substr(1), value, 1));
          break;
        }
      }
      return value;
    }
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (is_letter(text_[at_]) || text_[at_] == '#' || text_[at_] == '@')) {
      ++at_;
    }
    const std::string_view word = text_.substr(begin, at_ - begin);
    skip();
    if (word.empty()) {
      throw wrong("a number or a variable is missing");
    }
    const Value number = number_of(word);
    if (!number) {
      throw wrong(fmt::format("'{}' is no number we can hold", printable(word)));
    }
    return number;
  }

  bool at_name() const {
    return at_ < text_.size() && is_letter(text_[at_]) && !is_digit(text_[at_]);
  }

  /// Behind NAME or NAME[…].
  void skip_name() {
    while (at_ < text_.size() && is_letter(text_[at_])) {
      ++at_;
    }
    if (starts("[")) {
      int level = 0;
      do {
        level += text_[at_] == '[' ? 1 : text_[at_] == ']' ? -1 : 0;
        ++at_;
      } while (at_ < text_.size() && level > 0);
    }
    skip();
  }

  /// NAME, or NAME[number]; empty: which element is not known.
  std::string reference() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_letter(text_[at_])) {
      ++at_;
    }
    std::string name(text_.substr(begin, at_ - begin));
    if (!starts("[")) {
      skip();
      return name;
    }
    take("[");
    const Value index = all();
    if (!take("]")) {
      throw wrong("']' is missing");
    }
    return index ? fmt::format("{}[{}]", name, *index) : name + "[?]";
  }

  Value get(const std::string& name) const {
    return counts_ == Counts::kNo || name.ends_with("[?]") ? Value() : variable_(name);
  }
  Value set(const std::string& name, const Value& value) const {
    if (counts_ != Counts::kNo) {
      if (!assign_) {
        throw wrong("this is no expression");
      }
      assign_(name, counts_ == Counts::kYes ? value : Value());
    }
    return value;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t line_;
  const ShellNumberOf& variable_;
  const ShellSetNumber& assign_;
  std::size_t at_ = 0;
  Counts counts_ = Counts::kYes;
  mutable int depth_ = 0;
};

}  // namespace

std::optional<std::int64_t> shell_arithmetic(std::string_view text, const std::string& file,
                                             std::size_t line, const ShellNumberOf& variable,
                                             const ShellSetNumber& assign) {
  return Evaluator(text, file, line, variable, assign).whole();
}

bool changes_shell_variable(std::string_view text) {
  const auto at = [&](std::size_t i) { return i < text.size() ? text[i] : ' '; };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i], before = i > 0 ? text[i - 1] : ' ', next = at(i + 1);
    const bool compares =
        next == '=' || std::string_view("=!<>").find(before) != std::string_view::npos;
    const bool shifts =
        c == '=' && i > 1 && (before == '<' || before == '>') && text[i - 2] == before;
    if (shifts || (c == '=' && !compares) || ((c == '+' || c == '-') && next == c)) {
      return true;
    }
  }
  return false;
}

}  // namespace lockstep
