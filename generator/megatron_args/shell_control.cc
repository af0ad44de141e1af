// What decides which commands run: lists, if, case, loops and functions.
#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "generator/megatron_args/shell_expand.h"
#include "generator/megatron_args/shell_pattern.h"
#include "generator/megatron_args/shell_reader.h"
#include "generator/megatron_args/shell_test.h"

namespace lockstep {
namespace {

constexpr int kMaxDepth = 64;            // of if, case, { }, calls and scripts inside scripts
constexpr std::size_t kRoundCost = 256;  // characters that a round of a loop counts as
constexpr std::string_view kUndecided = "whether it runs cannot be decided";
constexpr std::string_view kNotTaken = "the branch around it is not taken";

bool has_word(std::span<const ShellToken> tokens, std::string_view text) {
  return std::ranges::any_of(tokens, [&](const ShellToken& token) {
    return token.kind == ShellToken::Kind::kWord && token.text == text;
  });
}

}  // namespace

ShellAnswer ShellReader::list(Ends ends, bool active) {
  if (++depth_ > kMaxDepth) {
    throw Error("commands are nested too deeply").at(file_, cursor_.line());
  }
  Answer answer = Answer::kYes;
  std::string op;              // && or || before the next command
  std::size_t first_line = 0;  // of the commands that && and || join
  while (!cursor_.at_end() && !cursor_.at_one_of(ends)) {
    if (cursor_.at_redirection()) {  // of a loop or a group
      cursor_.skip_redirection();
      continue;
    }
    if (cursor_.at_any_operator() && !cursor_.at_operator("(")) {
      const std::string& text = cursor_.here().text;
      if (text == ")" || text == ";;") {
        break;
      }
      const bool joins = text == "&&" || text == "||";
      if (joins || op.empty() || text != ";") {  // a line may end behind && and ||
        op = joins ? text : "";
      }
      cursor_.next();
      continue;
    }
    first_line = op.empty() ? cursor_.line() : first_line;
    const bool runs = active && !returned_;
    if (op.empty()) {
      answer = command(runs);
    } else {
      if (runs && answer == Answer::kTakenNo && !in_condition_) {
        warn(first_line, "this depends on files: it counts as false");
      }
      answer = joined(answer, op, runs);
    }
    op.clear();
  }
  --depth_;
  return answer;
}

ShellAnswer ShellReader::joined(Answer left, const std::string& op, bool active) {
  const bool both = op == "&&";
  if (left != Answer::kUnknown) {
    const bool runs = (left == Answer::kYes) == both;
    const Answer right = command(active && runs);
    return !runs ? left : both ? right : shell_or(left, right);
  }
  if (active && !in_condition_ && !at_test()) {
    warn(cursor_.line(),
         fmt::format("{}: it is left out, and what it sets is not known", kUndecided));
  }
  forgets_ += active ? 1 : 0;
  const Answer right = without(kUndecided, [&] { return command(false); });
  forgets_ -= active ? 1 : 0;
  return both ? shell_and(left, right) : shell_or(left, right);
}

bool ShellReader::at_test() const {
  return cursor_.at_word("[") || cursor_.at_word("[[") || cursor_.at_word("test") ||
         cursor_.at_word("!");
}

ShellAnswer ShellReader::command(bool active) {
  if (cursor_.at_operator("(")) {
    return group(")", active);
  }
  const ShellToken& first = cursor_.here();
  if (first.kind == ShellToken::Kind::kWord) {
    if (first.text == "!") {
      return negated(active);
    }
    if (first.text == "if") {
      return branch(active);
    }
    if (first.text == "case") {
      return selection(active);
    }
    if (first.text == "for" || first.text == "while" || first.text == "until" ||
        first.text == "select") {
      return loop(active);
    }
    if (first.text == "{") {
      return group("}", active);
    }
    if (first.text == "[[") {
      return long_test(active);
    }
    if (first.text == "function" || cursor_.at_function()) {
      return function(active);
    }
  }
  return simple(active);
}

ShellAnswer ShellReader::negated(bool active) {
  bool odd = false;
  while (cursor_.at_word("!")) {
    odd = !odd;
    cursor_.next();
  }
  const bool nothing = cursor_.at_end() || cursor_.at_any_operator();
  const Answer answer = nothing ? Answer::kUnknown : command(active);
  return odd ? shell_not(answer) : answer;
}

ShellAnswer ShellReader::group(std::string_view end, bool active) {
  const std::size_t line = cursor_.line();
  const std::string open = cursor_.here().text;
  cursor_.next();
  std::optional<decltype(ShellVariables::values)> before;  // a subshell's variables end with it
  if (end == ")" && active) {
    std::size_t characters = 0;
    for (const auto& [name, value] : variables().values) {
      for (const ShellWord& item : value.items) {
        characters += name.size() + item.text.size();
      }
    }
    variables().spend(characters, file_, line);
    before = variables().values;
  }
  const int forgets = forgets_;
  forgets_ = end == ")" ? 0 : forgets_;
  const Answer answer = list({end}, active);
  forgets_ = forgets;
  if (before) {
    variables().values = *std::move(before);
  }
  cursor_.expect(end, open, line);
  return answer;
}

ShellAnswer ShellReader::branch(bool active) {
  const std::size_t line = cursor_.line();
  const int forgets = forgets_;
  bool open = active;  // no branch was taken yet
  std::string_view why = kNotTaken;
  do {
    const std::size_t condition_line = cursor_.line();
    cursor_.next();
    const Answer answer = condition({"then"}, open);
    cursor_.expect("then", "if", line);
    const bool taken = open && answer == Answer::kYes;
    if (open && answer == Answer::kUnknown) {
      warn(condition_line,
           "this condition cannot be decided: its branches are left out, and what they set is "
           "not known");
      open = false;
      why = kUndecided;
      ++forgets_;
    } else if (open && answer == Answer::kTakenNo) {
      warn(condition_line, "this condition cannot be decided: its branch is left out");
    }
    without(why, [&] { return list({"elif", "else", "fi"}, taken); });
    open = open && !taken;
  } while (cursor_.at_word("elif"));
  if (cursor_.at_word("else")) {
    cursor_.next();
    without(why, [&] { return list({"fi"}, open); });
  }
  cursor_.expect("fi", "if", line);
  forgets_ = forgets;
  return Answer::kYes;
}

ShellAnswer ShellReader::condition(Ends ends, bool active) {
  const bool outer = std::exchange(in_condition_, true);
  const Answer answer = list(ends, active);
  in_condition_ = outer;
  return answer;
}

ShellAnswer ShellReader::selection(bool active) {
  const std::size_t line = cursor_.line();
  const int forgets = forgets_;
  cursor_.next();
  if (cursor_.at_end()) {
    cursor_.expect("esac", "case", line);
  }
  const std::string text = expand_text(cursor_.here().text, cursor_.line(), file_, variables());
  const std::optional<std::string> subject = variables().as_condition(text);
  cursor_.next();
  cursor_.skip_separators();
  cursor_.expect("in", "case", line);
  bool open = active;
  std::string_view why = kNotTaken;
  const auto give_up = [&](std::size_t at) {
    warn(at,
         "what this 'case' looks at is not known: it is left out, and what it sets is not known");
    open = false;
    why = kUndecided;
    ++forgets_;
  };
  if (open && !subject) {
    give_up(line);
  }
  cursor_.skip_separators();
  while (!cursor_.at_end() && !cursor_.at_word("esac")) {
    const std::size_t arm_line = cursor_.line();
    const Answer matches = arm(subject.value_or(""), open);
    if (open && matches == Answer::kUnknown) {
      give_up(arm_line);
    }
    cursor_.expect(")", "case", line);
    const bool taken = open && matches == Answer::kYes;
    without(why, [&] { return list({"esac"}, taken); });
    open = open && !taken;
    if (cursor_.at_operator(";;")) {
      cursor_.next();
    }
    cursor_.skip_separators();
  }
  cursor_.expect("esac", "case", line);
  forgets_ = forgets;
  return Answer::kYes;
}

ShellAnswer ShellReader::arm(const std::string& subject, bool active) {
  if (cursor_.at_operator("(")) {
    cursor_.next();
  }
  Answer matches = Answer::kNo;
  int level = 0;
  while (!cursor_.at_end() && (level > 0 || !cursor_.at_operator(")"))) {
    if (cursor_.at_operator("(")) {
      ++level;
      matches = shell_or(matches, Answer::kUnknown);
    } else if (cursor_.at_operator(")")) {
      --level;
    } else if (active && level == 0 && cursor_.at_any_word()) {
      const std::string pattern =
          expand_text(cursor_.here().text, cursor_.line(), file_, variables());
      const std::optional<std::string> known = variables().as_condition(pattern);
      const std::optional<bool> match = known ? shell_matches(subject, *known) : std::nullopt;
      matches = shell_or(matches, match ? shell_answer(*match) : Answer::kUnknown);
    }
    cursor_.next();
  }
  return matches;
}

std::optional<std::vector<ShellWord>> ShellReader::loop_words(Tokens header) {
  const bool all = header.size() == 2;  // for NAME: over the arguments
  if (header.size() < 2 || header[0].text != "for" || !is_shell_name(header[1].text) ||
      (!all && header[2].text != "in")) {
    return std::nullopt;
  }
  std::vector<ShellWord> words = all ? variables().arguments() : std::vector<ShellWord>();
  for (const ShellToken& token : header.subspan(all ? 2 : 3)) {
    std::ranges::move(expand_word(token.text, token.line, file_, variables()),
                      std::back_inserter(words));
  }
  std::erase_if(words, [&](const ShellWord& word) {
    return word.loose && variables().is_nothing(word.text);
  });
  const bool countable = std::ranges::none_of(words, [&](const ShellWord& word) {
    return (word.loose && variables().unknown_in(word.text) != nullptr) ||
           word.text.find_first_of("*?{") != std::string::npos;  // names of files, {1..4}
  });
  return countable ? std::optional(std::move(words)) : std::nullopt;
}

ShellAnswer ShellReader::loop(bool active) {
  const std::size_t line = cursor_.line(), begin = cursor_.at();
  const std::string what = cursor_.here().text;
  const bool conditional = what == "while" || what == "until";
  Answer answer = Answer::kUnknown;  // of the condition
  cursor_.next();
  if (conditional) {
    answer = condition({"do"}, active);
  }
  while (!cursor_.at_end() && !cursor_.at_word("do")) {
    cursor_.next();
  }
  std::vector<ShellToken> header;
  for (const ShellToken& token : cursor_.between(begin, cursor_.at())) {
    if (token.text != ";") {
      header.push_back(token);
    }
  }
  cursor_.expect("do", what, line);
  if (active) {
    std::optional<std::vector<ShellWord>> rounds;
    if (answer == (what == "while" ? Answer::kNo : Answer::kYes)) {
      rounds.emplace();
    } else if (!conditional) {
      rounds = loop_words(header);
    }
    active_loop(rounds, header, conditional ? begin : cursor_.at());
  } else {
    if (forgets_ > 0 && header.size() > 1 && is_shell_name(header[1].text)) {
      variables().forget(header[1].text, line);
    }
    list({"done"}, false);
  }
  cursor_.expect("done", what, line);
  return Answer::kYes;
}

void ShellReader::active_loop(const std::optional<std::vector<ShellWord>>& rounds,
                              const std::vector<ShellToken>& header, std::size_t condition) {
  const std::size_t body = cursor_.at();
  skip_list({"done"});
  const Tokens tokens = cursor_.between(body, cursor_.at());
  const bool leaves = has_word(tokens, "break") || has_word(tokens, "continue");
  if (rounds && (rounds->empty() || !leaves)) {
    for (const ShellWord& word : *rounds) {
      if (returned_) {
        break;
      }
      variables().spend(kRoundCost + tokens.size(), file_, header[0].line);
      variables().values.insert_or_assign(header[1].text, Value{{word}, false});
      cursor_.go_to(body);
      list({"done"}, true);
    }
    return;
  }
  warn(header[0].line, "a loop: its body is left out, and what it sets is not known");
  ++forgets_;
  if (header[0].text == "for" && header.size() > 1 && is_shell_name(header[1].text)) {
    variables().forget(header[1].text, header[0].line);
  }
  cursor_.go_to(condition);
  without("it stands in a loop", [&] { return undecided_loop(); });
  --forgets_;
}

ShellAnswer ShellReader::undecided_loop() {
  if (cursor_.at_word("while") || cursor_.at_word("until")) {
    cursor_.next();
    list({"do"}, false);
    cursor_.next();
  }
  return list({"done"}, false);
}

void ShellReader::skip_list(Ends ends) {
  const bool outer = std::exchange(passes_over_, true);
  const int forgets = std::exchange(forgets_, 0);
  list(ends, false);
  forgets_ = forgets;
  passes_over_ = outer;
}

ShellAnswer ShellReader::function(bool active) {
  const std::size_t line = cursor_.line();
  if (cursor_.at_word("function")) {
    cursor_.next();
  }
  const std::string name = cursor_.at_any_word() ? cursor_.here().text : "";
  while (!cursor_.at_end() && !cursor_.at_word("{")) {
    cursor_.next();
  }
  cursor_.expect("{", "function", line);
  const std::size_t begin = cursor_.at();
  skip_list({"}"});
  const Tokens body = cursor_.between(begin, cursor_.at());
  if (active) {
    functions_[name].body.assign(body.begin(), body.end());
  } else {
    note_left_out(body);
  }
  cursor_.expect("}", "function", line);
  return Answer::kYes;
}

ShellAnswer ShellReader::long_test(bool active) {
  const std::size_t line = cursor_.line();
  cursor_.next();
  const std::size_t begin = cursor_.at();
  while (!cursor_.at_end() && !cursor_.at_word("]]")) {
    cursor_.next();
  }
  cursor_.expect("]]", "[[", line);
  return active || forgets_ > 0
             ? shell_test(cursor_.between(begin, cursor_.at() - 1), true, file_, variables())
             : Answer::kUnknown;
}

}  // namespace lockstep
