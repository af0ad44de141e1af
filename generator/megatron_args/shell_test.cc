#include "generator/megatron_args/shell_test.h"

#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "generator/megatron_args/shell_expand.h"
#include "generator/megatron_args/shell_pattern.h"

namespace lockstep {
namespace {

using Answer = ShellAnswer;
constexpr int kMaxDepth = 64;

class Condition {
 public:
  Condition(std::span<const ShellToken> words, bool patterns, const std::string& file,
            ShellVariables& variables)
      : words_(words), patterns_(patterns), file_(file), variables_(variables) {}

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
  };

  bool take(std::string_view what) {
    if (at_ < words_.size() && words_[at_].text == what) {
      ++at_;
      return true;
    }
    return false;
  }
  Operand next() {
    if (at_ >= words_.size()) {
      return {};
    }
    const ShellToken& word = words_[at_++];
    Operand operand{expand_text(word.text, word.line, file_, variables_), {}};
    operand.known = variables_.as_condition(operand.text);
    return operand;
  }

  Answer either() {
    Answer left = both();
    while (take("||") || take("-o")) {
      left = shell_or(left, both());
    }
    return left;
  }
  Answer both() {
    Answer left = single();
    while (take("&&") || take("-a")) {
      left = shell_and(left, single());
    }
    return left;
  }
  Answer single() {
    bool negated = false;
    while (take("!")) {
      negated = !negated;
    }
    const Answer answer = primary();
    return negated ? shell_not(answer) : answer;
  }
  Answer primary() {
    if (take("(")) {
      if (++depth_ > kMaxDepth) {
        throw Error("brackets are nested too deeply").at(file_, words_[at_ - 1].line);
      }
      const Answer answer = either();
      --depth_;
      return take(")") ? answer : Answer::kUnknown;
    }
    if (at_ >= words_.size()) {
      return Answer::kUnknown;
    }
    const std::string_view word = words_[at_].text;
    const bool one_operand = word.size() == 2 && word[0] == '-' && at_ + 1 < words_.size();
    if (one_operand) {
      ++at_;
      return of_one(word[1], next());
    }
    const Operand left = next();
    if (at_ >= words_.size() || is_connector(words_[at_].text)) {
      return of_one('n', left);
    }
    const std::string_view op = words_[at_++].text;
    return compare(left, op, next());
  }

  static bool is_connector(std::string_view word) {
    return word == "&&" || word == "||" || word == "-a" || word == "-o" || word == ")";
  }

  Answer of_one(char test, const Operand& operand) const {
    if (test == 'v') {
      return operand.known ? is_set(*operand.known) : Answer::kUnknown;
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

  Answer compare(const Operand& left, std::string_view op, const Operand& right) const {
    if (op == "=" || op == "==" || op == "!=") {
      const Answer same = equal(left, right);
      return op == "!=" ? shell_not(same) : same;
    }
    if (op == "-nt" || op == "-ot" || op == "-ef") {
      return Answer::kTakenNo;
    }
    if (op.size() != 3 || op[0] != '-' || !left.known || !right.known) {  // =~, <, >
      return Answer::kUnknown;
    }
    const std::optional<std::int64_t> a = to_int(trim(*left.known)), b = to_int(trim(*right.known));
    if (!a || !b) {
      return Answer::kTakenNo;  // an error of the shell's, which counts as no
    }
    return op == "-eq"   ? shell_answer(*a == *b)
           : op == "-ne" ? shell_answer(*a != *b)
           : op == "-lt" ? shell_answer(*a < *b)
           : op == "-le" ? shell_answer(*a <= *b)
           : op == "-gt" ? shell_answer(*a > *b)
           : op == "-ge" ? shell_answer(*a >= *b)
                         : Answer::kUnknown;
  }

  Answer equal(const Operand& left, const Operand& right) const {
    if (left.known && right.known) {
      const std::optional<bool> same =
          patterns_ ? shell_matches(*left.known, *right.known) : *left.known == *right.known;
      return same ? shell_answer(*same) : Answer::kUnknown;
    }
    // "x$SLURM_JOB_ID" is not "x".
    const bool longer = right.known && right.known->find_first_of("*?[") == std::string::npos &&
                        left.text.starts_with(*right.known) &&
                        variables_.is_something(left.text.substr(right.known->size()));
    return longer ? Answer::kNo : Answer::kUnknown;
  }

  std::span<const ShellToken> words_;
  bool patterns_;
  const std::string& file_;
  ShellVariables& variables_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

ShellAnswer shell_test(std::span<const ShellToken> words, bool patterns, const std::string& file,
                       ShellVariables& variables) {
  return Condition(words, patterns, file, variables).whole();
}

}  // namespace lockstep
