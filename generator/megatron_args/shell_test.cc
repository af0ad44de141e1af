#include "generator/megatron_args/shell_test.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "generator/megatron_args/shell_expand.h"
#include "generator/megatron_args/shell_pattern.h"

namespace lockstep {
namespace {

using Answer = ShellAnswer;
constexpr int kMaxDepth = 64;

bool is_comparison(std::string_view word) {
  static constexpr auto kComparisons =
      std::to_array<std::string_view>({"=", "==", "!=", "=~", "<", ">", "-eq", "-ne", "-lt", "-le",
                                       "-gt", "-ge", "-nt", "-ot", "-ef"});
  return std::ranges::find(kComparisons, word) != kComparisons.end();
}

class Condition {
 public:
  /// `words` of [[ ]] are expanded where they are looked at, those of [ ] before.
  Condition(std::vector<ShellWord> words, bool is_long, const std::string& file,
            ShellVariables& variables)
      : words_(std::move(words)), long_(is_long), file_(file), variables_(variables) {}

  Answer whole() {
    if (words_.empty()) {
      return Answer::kNo;
    }
    const Answer answer = either();
    return at_ == words_.size() ? answer : Answer::kUnknown;
  }

 private:
  /// A word, expanded. `known`: as a condition sees it.
  struct Operand {
    std::string text;
    std::optional<std::string> known;
    std::size_t line = 0;
  };

  std::size_t left() const { return words_.size() - at_; }
  bool take(std::string_view what) {
    if (left() > 0 && words_[at_].text == what) {
      ++at_;
      return true;
    }
    return false;
  }
  Operand next(bool pattern = false) {
    if (left() == 0) {
      return {};
    }
    const ShellWord& word = words_[at_++];
    const auto expand = pattern ? expand_pattern : expand_text;
    Operand operand{
        long_ ? expand(word.text, word.line, file_, variables_) : word.text, {}, word.line};
    operand.known = variables_.as_condition(operand.text);
    return operand;
  }

  Answer either() {
    Answer answer = both();
    while (take(long_ ? "||" : "-o")) {
      answer = shell_or(answer, both());
    }
    return answer;
  }
  Answer both() {
    Answer answer = single();
    while (take(long_ ? "&&" : "-a")) {
      answer = shell_and(answer, single());
    }
    return answer;
  }
  Answer single() {
    bool negated = false;
    while (left() > 1 && !compares() && take("!")) {
      negated = !negated;
    }
    const Answer answer = primary();
    return negated ? shell_not(answer) : answer;
  }
  /// What follows is a comparison, whatever its first word is.
  bool compares() const { return left() > 2 && is_comparison(words_[at_ + 1].text); }

  Answer primary() {
    if (left() > 1 && !compares() && take("(")) {
      if (++depth_ > kMaxDepth) {
        throw Error("brackets are nested too deeply").at(file_, words_[at_ - 1].line);
      }
      const Answer answer = either();
      --depth_;
      return take(")") ? answer : Answer::kUnknown;
    }
    if (left() == 0) {
      return Answer::kUnknown;
    }
    if (!long_ && left() == 2 && is_comparison(words_[at_].text)) {
      at_ += 2;
      return Answer::kTakenNo;  // an error of the shell's, which counts as no
    }
    const std::string_view word = words_[at_].text;
    if (word.size() == 2 && word[0] == '-' && left() > 1 && !compares()) {
      ++at_;
      return of_one(word[1], next());
    }
    const Operand first = next();
    if (left() == 0 || is_connector(words_[at_].text)) {
      return of_one('n', first);
    }
    const std::string_view op = words_[at_++].text;
    return compare(first, op, next(long_ && (op == "=" || op == "==" || op == "!=")));
  }

  bool is_connector(std::string_view word) const {
    return word == ")" || (long_ ? word == "&&" || word == "||" : word == "-a" || word == "-o");
  }

  Answer of_one(char test, const Operand& operand) const {
    if (test == 'v') {
      return operand.known ? is_set(*operand.known) : Answer::kUnknown;
    }
    if (test == 'o') {
      return Answer::kUnknown;  // an option of the shell's
    }
    if (test != 'z' && test != 'n') {
      return Answer::kTakenNo;
    }
    const bool something = variables_.is_something(operand.text);
    if (!operand.known && !something) {
      return Answer::kUnknown;
    }
    return shell_answer((operand.known ? !operand.known->empty() : something) == (test == 'n'));
  }

  /// Of a variable that a command may have set or not that is not known.
  Answer is_set(const std::string& name) const {
    if (!is_shell_name(name)) {
      return Answer::kUnknown;
    }
    const auto found = variables_.values.find(name);
    if (found == variables_.values.end() || found->second.items.empty()) {
      return Answer::kNo;
    }
    const std::string& text = found->second.items.front().text;
    const ShellUnknown* const unknown = variables_.unknown_in(text);
    const bool forgotten =
        unknown != nullptr && unknown->what == "$" + name && !variables_.is_something(text);
    return forgotten ? Answer::kUnknown : Answer::kYes;
  }

  Answer compare(const Operand& a, std::string_view op, const Operand& b) {
    if (op == "=" || op == "==" || op == "!=") {
      const Answer same = equal(a, b);
      return op == "!=" ? shell_not(same) : same;
    }
    if (op == "-nt" || op == "-ot" || op == "-ef") {
      return Answer::kTakenNo;
    }
    if (op.size() != 3 || op[0] != '-' || !a.known || !b.known) {  // =~, <, >
      return Answer::kUnknown;
    }
    const std::optional<std::int64_t> x = number(a), y = number(b);
    if (!x || !y) {
      return no_number_ ? Answer::kTakenNo : Answer::kUnknown;
    }
    return op == "-eq"   ? shell_answer(*x == *y)
           : op == "-ne" ? shell_answer(*x != *y)
           : op == "-lt" ? shell_answer(*x < *y)
           : op == "-le" ? shell_answer(*x <= *y)
           : op == "-gt" ? shell_answer(*x > *y)
           : op == "-ge" ? shell_answer(*x >= *y)
                         : Answer::kUnknown;
  }

  /// In [[ ]] an expression of any kind, in [ ] a number alone.
  std::optional<std::int64_t> number(const Operand& operand) {
    const std::string_view text = trim(*operand.known);
    if (!long_) {
      const std::optional<std::int64_t> value = to_int(text.substr(text.starts_with('+') ? 1 : 0));
      no_number_ = no_number_ || !value;
      return value;
    }
    try {
      return shell_number(text, operand.line, file_, variables_);
    } catch (const Error&) {  // an error of the shell's, which counts as no
      no_number_ = true;
      return std::nullopt;
    }
  }

  Answer equal(const Operand& a, const Operand& b) {
    if (a.known && b.known) {
      if (!long_) {
        return shell_answer(*a.known == *b.known);
      }
      variables_.spend(shell_match_cost(*a.known, *b.known), file_, a.line);
      const std::optional<bool> same = shell_matches(*a.known, *b.known);
      return same ? shell_answer(*same) : Answer::kUnknown;
    }
    // "x$SLURM_JOB_ID" is not "x".
    const bool longer = b.known && b.known->find_first_of("*?[\\") == std::string::npos &&
                        a.text.starts_with(*b.known) &&
                        variables_.is_something(a.text.substr(b.known->size()));
    return longer ? Answer::kNo : Answer::kUnknown;
  }

  std::vector<ShellWord> words_;
  bool long_;
  const std::string& file_;
  ShellVariables& variables_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool no_number_ = false;
};

}  // namespace

ShellAnswer shell_test(std::span<const ShellToken> words, bool is_long, const std::string& file,
                       ShellVariables& variables) {
  std::vector<ShellWord> all;
  for (const ShellToken& word : words) {
    if (is_long) {
      all.push_back({word.text, word.line});
    } else {
      std::ranges::move(expand_word(word.text, word.line, file, variables),
                        std::back_inserter(all));
    }
  }
  variables.drop_nothing(all);
  return Condition(std::move(all), is_long, file, variables).whole();
}

}  // namespace lockstep
