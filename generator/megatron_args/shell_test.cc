#include "generator/megatron_args/shell_test.h"

#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "generator/megatron_args/shell_expand.h"

namespace lockstep {
namespace {

using Answer = std::optional<bool>;
constexpr int kMaxDepth = 64;

class Condition {
 public:
  Condition(std::span<const ShellToken> words, const std::string& file, ShellVariables& variables)
      : words_(words), file_(file), variables_(variables) {}

  Answer whole() {
    const Answer answer = either();
    return at_ == words_.size() ? answer : Answer();
  }

 private:
  bool take(std::string_view what) {
    if (at_ < words_.size() && words_[at_].text == what) {
      ++at_;
      return true;
    }
    return false;
  }
  std::optional<std::string> next() {
    if (at_ >= words_.size()) {
      return std::nullopt;
    }
    const ShellToken& word = words_[at_++];
    return variables_.as_condition(expand_text(word.text, word.line, file_, variables_));
  }

  Answer either() {
    Answer left = both();
    while (take("||") || take("-o")) {
      const Answer right = both();
      left = left == true || right == true ? Answer(true)
             : left && right               ? Answer(false)
                                           : Answer();
    }
    return left;
  }
  Answer both() {
    Answer left = single();
    while (take("&&") || take("-a")) {
      const Answer right = single();
      left = left == false || right == false ? Answer(false)
             : left && right                 ? Answer(true)
                                             : Answer();
    }
    return left;
  }
  Answer single() {
    bool negated = false;
    while (take("!")) {
      negated = !negated;
    }
    const Answer answer = primary();
    return answer ? Answer(*answer != negated) : answer;
  }
  Answer primary() {
    if (take("(")) {
      if (++depth_ > kMaxDepth) {
        throw Error("brackets are nested too deeply").at(file_, words_[at_ - 1].line);
      }
      const Answer answer = either();
      --depth_;
      return take(")") ? answer : Answer();
    }
    if (at_ >= words_.size()) {
      return std::nullopt;
    }
    const std::string_view word = words_[at_].text;
    const bool one_operand = word.size() == 2 && word[0] == '-' && at_ + 1 < words_.size();
    if (one_operand) {
      ++at_;
      const std::optional<std::string> operand = next();
      return (word != "-z" && word != "-n") || !operand
                 ? Answer()
                 : Answer(operand->empty() == (word == "-z"));
    }
    const std::optional<std::string> left = next();
    if (at_ >= words_.size() || is_connector(words_[at_].text)) {
      return left ? Answer(!left->empty()) : Answer();
    }
    const std::string_view op = words_[at_++].text;
    const std::optional<std::string> right = next();
    return left && right ? compare(*left, op, *right) : Answer();
  }

  static bool is_connector(std::string_view word) {
    return word == "&&" || word == "||" || word == "-a" || word == "-o" || word == ")";
  }

  static Answer compare(const std::string& left, std::string_view op, const std::string& right) {
    if (op == "=" || op == "==") {
      return shell_matches(left, right);
    }
    if (op == "!=") {
      return !shell_matches(left, right);
    }
    const std::optional<std::int64_t> a = to_int(trim(left)), b = to_int(trim(right));
    if (!a || !b) {
      return std::nullopt;
    }
    return op == "-eq"   ? Answer(*a == *b)
           : op == "-ne" ? Answer(*a != *b)
           : op == "-lt" ? Answer(*a < *b)
           : op == "-le" ? Answer(*a <= *b)
           : op == "-gt" ? Answer(*a > *b)
           : op == "-ge" ? Answer(*a >= *b)
                         : Answer();
  }

  std::span<const ShellToken> words_;
  const std::string& file_;
  ShellVariables& variables_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

bool shell_matches(std::string_view text, std::string_view pattern) {
  std::size_t t = 0, p = 0, star = std::string_view::npos, from = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t]) && pattern[p] != '*') {
      ++t;
      ++p;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') {
    ++p;
  }
  return p == pattern.size();
}

std::optional<bool> shell_test(std::span<const ShellToken> words, const std::string& file,
                               ShellVariables& variables) {
  return Condition(words, file, variables).whole();
}

}  // namespace lockstep
